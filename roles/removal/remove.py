"""Everything that gpufleet brought to one host: how it is taken away, in order."""

from __future__ import annotations

from gpufleet.exporter import operations as exporter
from gpufleet.host.operation import role
from gpufleet.node.operations import removal
from gpufleet.node.operations.removal import LeavingNode
from gpufleet.toolkit import operations as runtimes


@role("Removal")
def remove(node: LeavingNode) -> None:
    """Take away what `node` has on record or begun, and nothing else; the record goes last."""
    plan = node.plan
    by_key = {runtime.key: runtime for runtime in plan.runtimes}

    removal.wait("Wait for the package manager", node)
    removal.unload("Unload the NVIDIA modules", plan, not node.settings.host.allow_disruption)
    exporter.stop("Stop the exporter", plan.exporter, plan.images)
    runtimes.configure("Take nvidia out of docker", node.facts, by_key.get("docker"))
    runtimes.configure("Take nvidia out of containerd", node.facts, by_key.get("containerd"))
    runtimes.configure("Take nvidia out of CRI-O", node.facts, by_key.get("crio"))
    devices = removal.forget_devices("Remove the device files and the CDI spec", plan)
    purged = removal.packages("Remove the packages that were installed", node)
    cleaned = removal.files("Remove the files that were written", plan)
    removal.rebuild_initramfs("Rebuild the initramfs without the blacklist", plan.initramfs)
    removal.forget("Remove the record", node, devices, purged, cleaned)
