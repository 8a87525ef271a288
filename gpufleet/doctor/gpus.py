"""The outcomes of the checks of GPUs and NVSwitches, from their health. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from gpufleet.core.names import count_noun
from gpufleet.doctor.hardware import (
    EventCheck,
    HardwareCheck,
    HardwareProblem,
    judge_gpu_health,
    load_hardware,
)
from gpufleet.doctor.models import CheckOutcome, Verdict
from gpufleet.facts.health import GpuHealth, HostHealth

OF_A_GPU = "gpu."
MAX_PEERS = 64  # limit of the GPUs of one model to compare with


def judge_gpus(
    health: HostHealth | None, peers: Sequence[GpuHealth], chosen: Collection[str]
) -> list[CheckOutcome]:
    """The failures on each GPU, and one outcome for each check that all of them pass. `peers`: of
    other hosts; `chosen`: the checks that count."""
    if health is None:
        return []
    problems = [each for each in judge_gpu_health(health, peers) if each.check in chosen]
    failed = {problem.check for problem in problems}
    known: list[HardwareCheck | EventCheck] = [*load_hardware().events, *load_hardware().checks]
    passed = (
        CheckOutcome(check.id, Verdict.PASS, read)
        for check in known
        if check.id in chosen and check.id not in failed and (read := _read(check, health))
    )
    return [*map(_failure, problems), *passed]


def _failure(problem: HardwareProblem) -> CheckOutcome:
    of_gpu = problem.check.startswith(OF_A_GPU)
    place = "" if of_gpu else f"{problem.slot}: "
    return CheckOutcome(
        problem.check,
        Verdict(problem.severity.upper()),
        problem.read,
        f"{problem.meaning} Read: {place}{problem.read}.",
        gpu=problem.slot if of_gpu else "",
        steps=problem.steps,
    )


def _read(check: HardwareCheck | EventCheck, health: HostHealth) -> str:
    """The reading of a check that passes, "" if it read nothing."""
    if isinstance(check, EventCheck):
        return "none in the kernel log" if health.log_since is not None else ""
    read = [gpu for gpu in health.gpus if getattr(gpu, check.reads) is not None]
    return f"right on {count_noun(len(read), 'GPU')}" if read else ""


def peers_by_host(healths: Sequence[HostHealth | None]) -> list[list[GpuHealth]]:
    """For each host, GPUs of the other hosts, MAX_PEERS of each model at most."""
    pool: dict[str | None, list[tuple[int, GpuHealth]]] = defaultdict(list)
    for number, health in enumerate(healths):
        for gpu in health.gpus if health else ():
            if len(pool[gpu.model]) < MAX_PEERS:
                pool[gpu.model].append((number, gpu))
    return [
        [gpu for alike in pool.values() for owner, gpu in alike if owner != number]
        for number in range(len(healths))
    ]
