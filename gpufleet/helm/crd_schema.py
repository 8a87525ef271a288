"""Compare an API server's OpenAPI schema with a CRD. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KIND = "x-kubernetes-group-version-kind"


def published(
    definitions: Mapping[str, Any] | None, group: str, kind: str, version: Mapping[str, Any]
) -> bool:
    """Whether `definitions` (of /openapi/v2 or v3) have every field of one version of a CRD.

    `version`: an entry of the CRD's spec.versions.
    """
    wanted = {"group": group, "version": version["name"], "kind": kind}
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    for definition in (definitions or {}).values():
        if wanted in (definition.get(_KIND) or ()):
            return _has_fields(definition, schema)
    return False


def _has_fields(described: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Whether every property of `schema` is published; parts that the server does not publish as an
    object with properties are ignored."""
    if isinstance(schema.get("items"), Mapping) and isinstance(described.get("items"), Mapping):
        return _has_fields(described["items"], schema["items"])
    properties = described.get("properties")
    if not isinstance(properties, Mapping):
        return True
    for name, inner in (schema.get("properties") or {}).items():
        if name not in properties or not _has_fields(properties[name], inner):
            return False
    return True
