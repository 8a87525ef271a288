"""Where a Prometheus answers queries behind the API server. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def query_path(service: Any, spec: Mapping[str, Any]) -> str:
    """The path of its queries in the API server's proxy.

    `spec`: of the Prometheus object, {} if there is none. Port, prefix and TLS are the user's.
    """
    tls = (spec.get("web") or {}).get("tlsConfig") is not None
    place = f"{'https:' if tls else ''}{service.metadata.name}:{service.spec.ports[0].port}"
    services = f"/api/v1/namespaces/{service.metadata.namespace}/services"
    prefix = str(spec.get("routePrefix") or "").rstrip("/")
    return f"{services}/{place}/proxy{prefix}/api/v1/query"
