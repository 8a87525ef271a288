"""Shared by the tests of pods."""

from __future__ import annotations

from typing import Any

GPU: dict[str, Any] = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}


def pod(name: str, owner: str = "ReplicaSet", spec: Any = GPU, **metadata: Any) -> dict[str, Any]:
    owners = [{"kind": owner, "name": "owner", "uid": "u", "controller": True}] if owner else []
    about = {"name": name, "namespace": "ns", "uid": name, "ownerReferences": owners, **metadata}
    return {"metadata": about, "spec": spec, "status": {"phase": "Running"}}
