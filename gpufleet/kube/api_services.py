"""APIs that Services of a cluster offer, from the answer of its API. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpufleet.kube.facts import ApiService, ObjectRef
from gpufleet.kube.parse import release_of


def parse_api_services(items: Iterable[Mapping[str, Any]]) -> dict[str, ApiService]:
    """Those that a Service offers, by name; the API server's own have none."""
    found = {}
    for item in items:
        service = item["spec"].get("service")
        if service:
            name = item["metadata"]["name"]
            ref = ObjectRef("Service", service["namespace"], service["name"])
            found[name] = ApiService(name, ref, release_of(item))
    return found
