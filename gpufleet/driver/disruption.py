"""Whether a driver change would disrupt running GPU work. Pure."""

from __future__ import annotations

from collections.abc import Collection

from gpufleet.core.findings import Finding
from gpufleet.driver.choice import DriverChoice
from gpufleet.driver.findings import host as findings
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.model import GpuProcess, NodeFacts

DAEMONS = ("nvidia-persiste", "nv-fabricmanage", "nv-hostengine")  # as truncated by the kernel


def gpu_work(facts: NodeFacts, spared: Collection[int]) -> list[GpuProcess]:
    """Processes on the GPUs, except the driver's own daemons and the `spared` ones."""
    return [
        process
        for process in facts.gpu_processes
        if process.command not in DAEMONS and process.pid not in spared
    ]


def disruption(
    settings: DriverSettings,
    facts: NodeFacts,
    spared: Collection[int],
    target: str | None,
    choice: DriverChoice,
) -> list[Finding]:
    """Blockers if the plan would disrupt running GPU work."""
    if settings.allow_disruption or facts.loaded_driver is None:
        return []
    if facts.loaded_driver == target:
        return []  # packages can be completed while the module stays loaded
    after = target or f"branch {choice.branch}"
    if facts.gpu_pods:
        return [
            findings.KUBERNETES_GPU_PODS(
                before=facts.loaded_driver, after=after, pods=facts.gpu_pods
            )
        ]
    work = gpu_work(facts, spared)
    if work:
        names = ", ".join(str(process) for process in work[:5])
        return [findings.GPU_BUSY(before=facts.loaded_driver, after=after, work=names)]
    return []
