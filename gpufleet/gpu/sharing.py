"""How pods of a cluster share the GPUs of a node. Pure.

Sources: https://github.com/NVIDIA/k8s-device-plugin (read 2026-11-29): README.md, "Shared Access to
GPUs"; cmd/mps-control-daemon/mps/device.go
"""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.core.findings import Finding
from gpufleet.core.findings.settings import CONTRADICTION
from gpufleet.gpu.settings import GpuSettings

MAX_MPS_CLIENTS = 48  # of an MPS server: the plugin shares no GPU more often


def divides_gpus(settings: GpuSettings) -> bool:
    """True if a layout of the host's GPUs has MIG devices."""
    return any((settings.mig or {}).values())


def is_uniform(settings: GpuSettings) -> bool:
    """True if the layouts of all GPUs consist of one and the same profile."""
    layouts = list((settings.mig or {}).values())
    return all(layouts) and len({profile for layout in layouts for profile in layout}) == 1


def check_sharing(settings: GpuSettings) -> list[Finding]:
    """Findings about contradictory keys of sharing."""
    return [
        CONTRADICTION(first=first, second=second, problem=problem)
        for first, second, problem in _conflicts(settings)
    ]


def _conflicts(settings: GpuSettings) -> Iterator[tuple[str, str, str]]:
    """Pairs of contradictory settings, with the reason."""
    how, replicas = settings.sharing, settings.replicas
    shares = how in ("time-slicing", "mps")
    written = f'gpu_sharing = "{how}"' if how else "gpu_sharing, which is not set"
    if replicas and not shares:
        yield f"gpu_replicas ({replicas})", written, "GPUs that are not shared have no replicas"
    if shares and replicas is None:
        yield written, "gpu_replicas, which is not set", "it says how many pods share a GPU"
    if how == "mps":
        yield from _mps_conflicts(settings, written)
    if settings.mig_strategy == "single" and not is_uniform(settings):
        problem = "this strategy needs MIG devices of one profile on all GPUs of the node"
        yield 'gpu_mig_strategy = "single"', "gpu_mig", problem
    if how == "dra" and settings.mig_strategy:
        strategy = f'gpu_mig_strategy = "{settings.mig_strategy}"'
        yield written, strategy, "the DRA driver offers each MIG device as it is"


def _mps_conflicts(settings: GpuSettings, written: str) -> Iterator[tuple[str, str, str]]:
    if divides_gpus(settings):
        yield written, "gpu_mig", "NVIDIA's device plugin shares MIG devices only by time-slicing"
    if settings.compute_mode is not None:
        mode = f'gpu_compute_mode = "{settings.compute_mode}"'
        yield written, mode, "the MPS control daemon sets the compute mode"
    if settings.replicas and settings.replicas > MAX_MPS_CLIENTS:
        problem = f"an MPS server has at most {MAX_MPS_CLIENTS} clients"
        yield written, f"gpu_replicas ({settings.replicas})", problem
