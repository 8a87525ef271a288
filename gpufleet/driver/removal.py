"""How the driver leaves a host: its modules, device files and the initramfs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.driver.disruption import gpu_work
from gpufleet.driver.files import MODPROBE_FILE
from gpufleet.driver.record import DriverEntry
from gpufleet.host.findings import machine as findings
from gpufleet.role.protocol import Leaving

PERSISTENCE_OVERRIDE = "/etc/systemd/system/nvidia-persistenced.service.d/gpufleet.conf"
LOADED_NAMES = ("nvidia", "nvidia_uvm")  # where an old record does not name them


@dataclass(frozen=True, slots=True)
class DriverRemoval:
    """What goes of the driver besides its packages and files."""

    modules: tuple[str, ...]  # to load again where one of them cannot be unloaded
    unload: bool
    prerequisites: tuple[str, ...]  # modules of the kernel's own that the driver loaded
    initramfs: str  # file that it must not hold any more
    findings: tuple[Finding, ...]

    def first(self) -> Mapping[str, object]:
        return {"unload the NVIDIA modules": self.unload}

    def before(self) -> Mapping[str, object]:
        return {}

    def after(self) -> Mapping[str, object]:
        return {f"rebuild the initramfs without {self.initramfs}": self.initramfs}

    def describe(self) -> dict[str, Any]:
        return {"unload": self.unload}


def plan_driver_removal(leaving: Leaving[DriverEntry]) -> DriverRemoval:
    """By the record, and not from under running work."""
    entry, facts = leaving.entry, leaving.facts
    ours = leaving.recorded or bool(entry.added)  # else the loaded module is another driver's
    return DriverRemoval(
        modules=tuple(entry.load or LOADED_NAMES),
        unload=ours and facts.loaded_driver is not None,
        prerequisites=tuple(entry.prerequisites or ()),
        initramfs=MODPROBE_FILE if MODPROBE_FILE in leaving.written else "",
        findings=_work(leaving),
    )


def _work(leaving: Leaving[DriverEntry]) -> tuple[Finding, ...]:
    work = gpu_work(leaving.facts, leaving.spared)
    pods = leaving.facts.gpu_pods
    if leaving.allow_disruption or not (work or pods):
        return ()
    names = ", ".join(str(process) for process in work[:5])
    return (findings.GPU_BUSY_REMOVAL(work=names or f"{pods} pods"),)
