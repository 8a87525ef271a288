"""Interprets answers of a cluster's API: 404s, pods. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpufleet.core.merge import value_at
from gpufleet.verify.parse import json_mapping

UNSERVED_KINDS = (  # 404 texts for kinds that an API server does not serve; the last in a Status
    "",
    "404 page not found",
    "the server could not find the requested resource",
)
# NVIDIA GPUs as nodes advertise them, by the names of the alert GpuPluginNotAdvertising. NVIDIA's
# network operator has names such as nvidia.com/ib_hca.
GPU_NAMES = re.compile(
    r"nvidia\.com/(?!hostdev|.*(rdma|sriov|hca|roce))"
    r"|(?!nvidia\.com|amd\.com|gpu\.intel\.com).*[^a-z0-9](v?gpu|vcuda)"
)
FOREIGN = "UnexpectedServerResponse"  # cause in a Status that client-go made from a foreign answer


def is_gpu_name(resource: str) -> bool:
    """True if a resource of a node with NVIDIA GPUs is GPUs, parts of them, or shares of them, by
    NVIDIA's or another plugin. Example: nvidia.com/gpu.shared and volcano.sh/vgpu-number are."""
    return bool(GPU_NAMES.match(resource))


def is_unserved(body: Any) -> bool:
    """True if a 404 is the API server's answer about a kind that it does not serve. A load balancer
    in front of it has other 404s."""
    text = _text(body)
    status = json_mapping(text)
    if _is_foreign(status):
        return False
    return text in UNSERVED_KINDS or (
        status.get("reason") == "NotFound" or status.get("message") in UNSERVED_KINDS[1:]
    )


def is_object_gone(body: Any, name: str) -> bool:
    """True if a 404 is the API server's answer about an object of that name."""
    status = json_mapping(_text(body))
    says = (status.get("kind"), status.get("reason"), value_at(status, "details.name"))
    causes = value_at(status, "details.causes")
    return says == ("Status", "NotFound", name) and FOREIGN not in str(causes)


def error_text(error: Any) -> str:
    """The status of an ApiException, and the API server's reason, such as a missing permission or
    the policy that refuses an object."""
    said = json_mapping(_text(error.body)).get("message")
    return f"{error.status} {error.reason}{f': {said}' if said else ''}"


def _is_foreign(status: Mapping[str, Any]) -> bool:
    """True if client-go made the Status from an answer that did not come from an API server."""
    causes = value_at(status, "details.causes")
    return isinstance(causes, list) and any(
        isinstance(each, dict)
        and each.get("reason") == FOREIGN
        and str(each.get("message", "")).strip() not in UNSERVED_KINDS
        for each in causes
    )


def _text(body: Any) -> str:
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body or "")
    return text.strip()


OTHER_PURPOSES = (
    *("gpu-feature-discovery", "mps-control-daemon", "config-manager"),  # the plugin's image
    "nv-hostengine",  # the exporter's
)


def has_ready_condition(thing: Any) -> bool:
    """True if a pod or node is Ready."""
    return any(
        condition.type == "Ready" and condition.status == "True"
        for condition in thing.status.conditions or ()
    )


def runs_image(pod: Any, image: str) -> bool:
    """True if a pod runs an image for its main purpose."""
    for container in pod.spec.containers:
        # dcgm-exporter for nvcr.io/nvidia/k8s/dcgm-exporter:4.5@sha256:…
        name = container.image.split("@")[0].rsplit("/", 1)[-1].split(":")[0]
        command = (container.command or [""])[0].rsplit("/", 1)[-1]
        if name == image and command not in OTHER_PURPOSES:
            return True
    return False
