"""Finds processes and containers that use the GPUs of a host. Pure."""

from __future__ import annotations

from collections.abc import Collection

from gpufleet.facts.model import Daemon, GpuProcess, NodeFacts

# from another run that gathers facts
QUESTIONS = (
    *("nvidia-smi -L", "nvidia-smi --format=", "nvidia-smi -q -x", "nvidia-smi nvlink -s"),
    "nvidia-smi nvlink -e",
)
DAEMONS = ("nvidia-persiste", "nv-fabricmanage", "nv-hostengine")  # as truncated by the kernel


def gpu_work(facts: NodeFacts, spared: Collection[int]) -> list[GpuProcess]:
    """Processes on the GPUs, except the driver's own daemons and the `spared` ones."""
    return [
        process
        for process in facts.gpu_processes
        if process.command not in DAEMONS
        and not process.arguments.startswith(QUESTIONS)
        and process.pid not in spared
    ]


def in_containers(facts: NodeFacts, spared: Collection[int] = ()) -> bool:
    """True if containers have GPUs, which they may lose when systemd reloads its units."""
    known = facts.gpu_pods or facts.gpu_containers
    return bool(known) or any(map(_in_container, gpu_work(facts, spared)))


def _in_container(process: GpuProcess) -> bool:
    """True if a process is in a container, or may be."""
    daemon = Daemon(process.pid, process.command, process.cgroup)
    return not process.cgroup or daemon.in_pod or bool(daemon.container)
