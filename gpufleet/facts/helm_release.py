"""Helm's own record of a release: the Secrets of type helm.sh/release.v1, decoded. Pure.

Source: helm.sh/helm pkg/storage/driver (base64 over gzip over JSON; labels owner, name, status,
version on each Secret; one Secret per revision).
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import yaml

from gpufleet.facts.cluster import HelmRelease, ObjectRef, ReleaseRef, Revision
from gpufleet.facts.cluster_parse import Answer, object_ref
from gpufleet.facts.manifests import ManifestLoader

RELEASE_TYPE = "helm.sh/release.v1"
_HELMS_LABELS = ("name", "owner", "status", "version", "createdAt", "modifiedAt")
_WORKLOADS = re.compile(r"^kind:\s*[\"']?(DaemonSet|Deployment|StatefulSet)\b", re.MULTILINE)
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)")


class UndecodableRelease(ValueError):
    """A Secret that says that it is a Helm release, and whose content is not one."""


def newest_revisions(metadata: Iterable[Answer]) -> dict[ReleaseRef, str]:
    """Release -> name of the Secret of its newest revision, from the Secrets' metadata."""
    newest: dict[ReleaseRef, tuple[int, str]] = {}
    for item in metadata:
        ref, revision = _labels(item)
        if ref not in newest or newest[ref][0] < revision.number:
            newest[ref] = (revision.number, item["metadata"]["name"])
    return {ref: name for ref, (_, name) in newest.items()}


def histories(metadata: Iterable[Answer]) -> dict[ReleaseRef, tuple[Revision, ...]]:
    """Every revision of every release, oldest first."""
    found: dict[ReleaseRef, list[Revision]] = {}
    for item in metadata:
        ref, revision = _labels(item)
        found.setdefault(ref, []).append(revision)
    return {
        ref: tuple(sorted(revisions, key=lambda revision: revision.number))
        for ref, revisions in found.items()
    }


def _labels(item: Answer) -> tuple[ReleaseRef, Revision]:
    metadata = item["metadata"]
    labels = metadata["labels"]
    return (
        ReleaseRef(metadata["namespace"], labels["name"]),
        Revision(int(labels["version"]), labels["status"]),
    )


def decode_release(secret: Answer) -> HelmRelease:
    """The revision of a release that one Secret holds. Raises UndecodableRelease."""
    metadata = secret["metadata"]
    try:
        content = gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"])))
        release = json.loads(content)
        decoded = _release(release)
    except (KeyError, TypeError, ValueError, binascii.Error, OSError, EOFError, zlib.error) as bad:
        where = f"{metadata.get('namespace')}/{metadata.get('name')}"
        raise UndecodableRelease(f"Secret {where} is no Helm release: {bad}") from bad
    labels = metadata.get("labels") or {}
    own = {key: value for key, value in labels.items() if key not in _HELMS_LABELS}
    return replace(decoded, labels=own)


def _release(data: Mapping[str, Any]) -> HelmRelease:
    info = data["info"]
    chart = data["chart"]["metadata"]
    return HelmRelease(
        name=data["name"],
        namespace=data["namespace"],
        revision=data["version"],
        status=info["status"],
        chart=chart["name"],
        chart_version=chart["version"],
        app_version=str(chart.get("appVersion") or ""),
        values=data.get("config") or {},
        description=info.get("description") or "",
        updated=_seconds(info.get("last_deployed") or ""),
        apply_method=data.get("apply_method") or "",
        workloads=workloads_in(data.get("manifest") or "", data["namespace"]),
    )


def _seconds(text: str) -> int:
    """RFC 3339 with nanoseconds, as Go writes it, in seconds since 1970."""
    match = _TIME.fullmatch(text)
    if match is None:
        return 0
    return int(datetime.fromisoformat(match[1] + match[2].replace("Z", "+00:00")).timestamp())


def workloads_in(manifest: str, namespace: str) -> tuple[ObjectRef, ...]:
    """DaemonSets, Deployments and StatefulSets of a manifest, which may be hundreds of kilobytes:
    only their documents are parsed."""
    found = []
    for document in re.split(r"^---\s*$", manifest, flags=re.MULTILINE):
        if _WORKLOADS.search(document):
            content = yaml.load(document, Loader=ManifestLoader)
            if isinstance(content, dict):
                found.append(object_ref(content, namespace))
    return tuple(found)
