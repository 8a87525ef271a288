"""Removal plan of the driver: its modules, device files and the initramfs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.names import counted
from gpufleet.driver.files import MODPROBE_FILE
from gpufleet.driver.findings import host as findings
from gpufleet.driver.record import DriverEntry
from gpufleet.facts.gpu_work import gpu_work
from gpufleet.role.protocol import Removal, RemovalContext

LOADED_NAMES = ("nvidia", "nvidia_uvm")  # if an old record does not list them


@dataclass(frozen=True, slots=True)
class DriverRemoval(Removal):
    """What is removed besides the driver's packages and files."""

    modules: tuple[str, ...]  # loaded again if one cannot be unloaded
    unload: bool
    prerequisites: tuple[str, ...]  # modules of the kernel, loaded for the driver
    initramfs: str  # file to remove from it
    findings: tuple[Finding, ...]

    def first(self) -> Mapping[str, object]:
        return {"unload the NVIDIA modules": self.unload}

    def after(self) -> Mapping[str, object]:
        return {f"rebuild the initramfs without {self.initramfs}": self.initramfs}

    def describe(self) -> dict[str, Any]:
        return {"unload": self.unload}


def plan_driver_removal(
    context: RemovalContext[DriverEntry], allow_disruption: bool
) -> DriverRemoval:
    """Plan by the record; running GPU work is a blocker unless `allow_disruption`."""
    entry, facts = context.entry, context.facts
    ours = context.recorded or bool(entry.added)  # otherwise the loaded module is another driver's
    return DriverRemoval(
        modules=tuple(entry.load or LOADED_NAMES),
        unload=ours and facts.loaded_driver is not None,
        prerequisites=tuple(entry.prerequisites or ()),
        initramfs=MODPROBE_FILE if MODPROBE_FILE in context.written else "",
        findings=() if allow_disruption else _work(context),
    )


def _work(context: RemovalContext[DriverEntry]) -> tuple[Finding, ...]:
    work = gpu_work(context.facts, context.spared)
    pods = context.facts.gpu_pods
    if not (work or pods):
        return ()
    names = ", ".join(str(process) for process in work[:5])
    return (findings.GPU_BUSY_REMOVAL(work=names or counted(pods, "pod")),)
