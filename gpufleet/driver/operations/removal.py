"""Removal of the driver: modules, device files, initramfs."""

from __future__ import annotations

from collections.abc import Sequence

from pyinfra import host

from gpufleet.driver.findings import host as findings
from gpufleet.driver.role import DriverRemoval
from gpufleet.host.asking import framed
from gpufleet.host.operation import Commands, operation
from gpufleet.host.shell import explain, script


@operation
def unload(plan: DriverRemoval, must: bool) -> Commands:
    """
    Stop the services that use the GPUs and unload the nvidia modules, or change nothing.

    + plan: what is removed
    + must: a module that cannot be unloaded stops the host
    """
    if not plan.unload:
        host.noop("no module is loaded")
        return
    message = explain(host.name, findings.MODULES_STAY()) if must else ""
    busy = explain(host.name, findings.GPU_WORK_BEGAN()) if must else ""
    yield script("driver/unload", message, busy, *plan.modules)


@operation
def forget_devices(plan: DriverRemoval, specs: Sequence[str], units: Sequence[str]) -> Commands:
    """
    Remove the device files, and the CDI spec that gpufleet created.

    + plan: what is removed
    + specs: CDI specs that gpufleet created
    + units: units that would recreate them
    """
    if not (specs or plan.modules):
        host.noop("gpufleet created none")
        return
    words = (" ".join(specs), " ".join(units))
    yield framed(script("driver/remove_devices", *words, *plan.prerequisites))


@operation
def rebuild_initramfs(file: str) -> Commands:
    """
    Rebuild the initramfs of the running kernel and verify that it lacks the blacklist.

    + file: the removed modprobe configuration; "" means no change
    """
    if not file:
        host.noop("no blacklist was written")
        return
    message = explain(host.name, findings.INITRAMFS_STALE(how=f"without {file}"))
    yield script("driver/initramfs", file, message, "gone")
