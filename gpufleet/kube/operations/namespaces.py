"""Namespaces that gpufleet creates."""

from __future__ import annotations

from gpufleet.kube.objects import OURS
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.kube.parse import POD_SECURITY

# host ports, host network, device nodes; and by which a removal knows its own
LABELS = {f"{POD_SECURITY}enforce": "privileged", **OURS}


def ensure_namespace(api: ClusterApi, name: str) -> None:
    """Create a namespace unless it exists; an existing one is not changed."""
    try:
        api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": LABELS}})
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
