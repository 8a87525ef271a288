"""What answers of a cluster's API say: 404s, pods, the way to Prometheus. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

UNSERVED = (  # what an API server says of kinds that it does not serve; the last one in a Status
    "",
    "404 page not found",
    "the server could not find the requested resource",
)
FOREIGN = "UnexpectedServerResponse"  # cause in a Status that client-go made of another answer


def is_unserved(body: Any) -> bool:
    """Whether a 404 is the API server's about a kind that it does not serve: a load balancer before
    it has some of its own."""
    status = _status(body)
    if _is_foreign(status):
        return False
    return _text(body) in UNSERVED or (
        status.get("reason") == "NotFound" or status.get("message") in UNSERVED[1:]
    )


def is_gone(body: Any, name: str) -> bool:
    """Whether a 404 is the API server's about an object of that name."""
    status = _status(body)
    found = status.get("details")
    details = found if isinstance(found, dict) else {}
    says = (status.get("kind"), status.get("reason"), details.get("name"))
    return says == ("Status", "NotFound", name) and FOREIGN not in str(details.get("causes"))


def _is_foreign(status: Mapping[str, Any]) -> bool:
    """Whether client-go made it of an answer that no API server gives."""
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    return isinstance(causes, list) and any(
        isinstance(each, dict)
        and each.get("reason") == FOREIGN
        and str(each.get("message", "")).strip() not in UNSERVED
        for each in causes
    )


def _status(body: Any) -> Mapping[str, Any]:
    """The Status in a body; {} where it has none."""
    try:
        status = json.loads(_text(body))
    except (ValueError, RecursionError):
        return {}
    return status if isinstance(status, dict) else {}


def _text(body: Any) -> str:
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body or "")
    return text.strip()


OTHER_PURPOSES = (
    *("gpu-feature-discovery", "mps-control-daemon", "config-manager"),  # the plugin's image
    "nv-hostengine",  # the exporter's
)


def is_ready(thing: Any) -> bool:
    """Whether a pod or node is Ready."""
    return any(
        condition.type == "Ready" and condition.status == "True"
        for condition in thing.status.conditions or ()
    )


def runs(pod: Any, image: str) -> bool:
    """Whether a pod runs an image for its main purpose."""
    for container in pod.spec.containers:
        # dcgm-exporter of nvcr.io/nvidia/k8s/dcgm-exporter:4.5@sha256:…
        name = container.image.split("@")[0].rsplit("/", 1)[-1].split(":")[0]
        command = (container.command or [""])[0].rsplit("/", 1)[-1]
        if name == image and command not in OTHER_PURPOSES:
            return True
    return False


def query_path(service: Any, spec: Mapping[str, Any]) -> str:
    """The path of its queries in the API server's proxy.

    `spec`: of the Prometheus object, {} if there is none. Port, prefix and TLS are the user's.
    """
    tls = (spec.get("web") or {}).get("tlsConfig") is not None
    place = f"{'https:' if tls else ''}{service.metadata.name}:{service.spec.ports[0].port}"
    services = f"/api/v1/namespaces/{service.metadata.namespace}/services"
    prefix = str(spec.get("routePrefix") or "").rstrip("/")
    return f"{services}/{place}/proxy{prefix}/api/v1/query"
