"""Steps that remove the container toolkit from one host, before its packages."""

from __future__ import annotations

from gpufleet.node.operations.removal import RemovalNode
from gpufleet.toolkit import operations as runtimes
from gpufleet.toolkit.role import ROLE as TOOLKIT


def before(node: RemovalNode) -> None:
    """Remove the runtime nvidia before its program is removed."""
    by_key = {runtime.key: runtime for runtime in node.plan.of(TOOLKIT).runtimes}
    if docker := by_key.get("docker"):
        runtimes.configure_runtime("Remove the runtime nvidia from docker", node.facts, docker)
    if containerd := by_key.get("containerd"):
        runtimes.configure_runtime(
            "Remove the runtime nvidia from containerd", node.facts, containerd
        )
    if crio := by_key.get("crio"):
        runtimes.configure_runtime("Remove the runtime nvidia from CRI-O", node.facts, crio)
