"""Shared by the tests of members."""

from __future__ import annotations

from typing import Any


def node(name: str, ready: str = "True", gpus: int = 0, **more: Any) -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "message": "runtime is down"}
    return {
        "metadata": {"name": name, "labels": more.pop("labels", {})},
        "spec": more,
        "status": {
            "conditions": [condition],
            "nodeInfo": {"kubeletVersion": "v1.36.3"},
            "allocatable": {"cpu": "4", "nvidia.com/gpu": str(gpus)},
        },
    }


def pod(name: str, on: str = "", gpus: int = 0, phase: str = "Running") -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "metadata": {"name": name, "namespace": "kube-system" if name == "dns" else "jobs"},
        "spec": {"nodeName": on, "containers": [{"resources": {"limits": limits}}, {}]},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "False"}]},
    }


PODS = [
    pod("a", "gpu-1", 2),
    pod("b", "gpu-1", 1),
    pod("ended", "gpu-1", 4, phase="Succeeded"),
    pod("waits", "", 8, phase="Pending"),
    pod("absurd", "", 0, phase="Pending")
    | {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1k"}}}]}},
    pod("dns", "cp-1"),
]
