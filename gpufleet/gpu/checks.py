"""Checks the wanted layout and settings before anything is changed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpufleet.core.findings import Finding
from gpufleet.core.findings.settings import CONTRADICTION
from gpufleet.core.names import count_noun
from gpufleet.core.versions import version_tuple
from gpufleet.driver.catalog import DriverCatalog, devices_of
from gpufleet.driver.files import own_gpus
from gpufleet.facts.gpu import GpuState
from gpufleet.facts.gpu_work import gpu_work
from gpufleet.facts.model import NodeFacts, PciDevice
from gpufleet.gpu import findings as found
from gpufleet.gpu.layouts import Layout, layout_text, misfit_reason, profiles_of
from gpufleet.gpu.models import load_mig_catalog
from gpufleet.gpu.settings import ALL, GpuSettings
from gpufleet.gpu.sharing import check_sharing, divides_gpus
from gpufleet.role.protocol import RoleContext

MIG_MANAGER = "nvidia-mig-manager.service"
MAX_SHOWN = 5  # programs that a sentence names


@dataclass(frozen=True, slots=True)
class WantedGpu:
    """A GPU with its wanted layout. `state`: None before the driver is loaded."""

    index: int
    gpu: PciDevice
    layout: Layout | None
    state: GpuState | None

    @property
    def switches(self) -> bool:
        """True if the MIG mode changes, as far as known."""
        now = bool(self.state and self.state.mig)
        return self.layout is not None and bool(self.layout) != now


def check_keys(settings: GpuSettings) -> list[Finding]:
    """Findings about contradictory keys."""
    if divides_gpus(settings) and settings.compute_mode not in (None, "default"):
        mode = f'gpu_compute_mode = "{settings.compute_mode}"'
        problem = "a GPU that gpu_mig divides accepts only the default mode"
        conflict = CONTRADICTION(first=mode, second="gpu_mig", problem=problem)
        return [conflict, *check_sharing(settings)]
    return check_sharing(settings)


def check_targets(
    settings: GpuSettings, targets: Sequence[WantedGpu], context: RoleContext
) -> list[Finding]:
    """Blockers of a host: layouts, limits, the driver's version, other managers."""
    named = [int(key) for key in settings.mig or {} if key != ALL]
    missing = [index for index in named if index >= len(targets)]
    return list(
        dict.fromkeys(
            [
                *(_no_such_gpu(index, len(targets)) for index in missing),
                *(each for target in targets for each in _layout_problems(target, context)),
                *(each for target in targets for each in _limit_problems(settings, target)),
                *_other_managers(settings, context.facts),
            ]
        )
    )


def _no_such_gpu(index: int, gpus: int) -> Finding:
    there = f"this host has {count_noun(gpus, 'GPU')}, and the first has index 0"
    problem, remedy = f"gpu_mig names GPU {index}; {there}", "Correct the index in gpu_mig."
    return found.LAYOUT_UNFIT(problem=problem, remedy=remedy)


def _layout_problems(target: WantedGpu, context: RoleContext) -> Iterator[Finding]:
    if not target.layout:
        return
    catalog, name = load_mig_catalog(), gpu_name(target.gpu, context.catalog)
    model = catalog.model(target.gpu.device)
    this = f"GPU {target.index}, a {name}"
    if model is None:
        known = ", ".join(each.title for each in catalog.models)
        yield found.LAYOUT_UNFIT(
            problem=f"gpu_mig divides {this}, which is not among the GPUs with MIG in the catalog: "
            f"{known}",
            remedy="Set gpu_mig only for hosts with one of these GPUs.",
        )
        return
    if _is_older(context, model.driver):
        driver = context.driver or f"branch {context.branch}"
        yield found.MIG_NEEDS_DRIVER(gpu=name, minimum=model.driver, driver=driver)
    known = profiles_of(model, catalog)
    lacking = [each for each in dict.fromkeys(target.layout) if each not in catalog.shapes(model)]
    for profile in lacking:
        problem, remedy = f"{this}, has no MIG profile {profile}", f"Use its profiles: {known}."
        yield found.LAYOUT_UNFIT(problem=problem, remedy=remedy)
    if not lacking and (why := misfit_reason(target.layout, model, catalog)):
        problem = f"The layout {layout_text(target.layout)} does not fit on {this}: {why}"
        remedy = f"Use fewer or smaller instances: {known}."
        yield found.LAYOUT_UNFIT(problem=problem, remedy=remedy)


def _is_older(context: RoleContext, minimum: str) -> bool:
    """True if the driver after the run is older; a branch counts as its highest version."""
    there = version_tuple(context.driver or context.branch or "0")
    return bool(there[0]) and there < version_tuple(minimum)[: len(there)]


def gpu_name(gpu: PciDevice, catalog: DriverCatalog) -> str:
    [device] = devices_of(catalog, [gpu.device])
    return device.name


def _limit_problems(settings: GpuSettings, target: WantedGpu) -> Iterator[Finding]:
    state = target.state
    if state is None:
        return
    low, high, watts = state.least_power, state.most_power, settings.power_limit
    if isinstance(watts, int) and low and high and not low <= watts <= high:
        takes = f"accepts {low:.0f} to {high:.0f} W"
        yield found.SETTING_UNFIT(
            key="gpu_power_limit", value=watts, index=target.index, takes=takes
        )
    for key, lacks in _lacking(settings, state).items():
        if lacks:
            takes = "has no such setting: nvidia-smi prints [N/A] for it"
            yield found.SETTING_UNFIT(key=key, value="set", index=target.index, takes=takes)
    clocks = {
        "gpu_clocks": (settings.clocks, state.most_clock),
        "gpu_memory_clocks": (settings.memory_clocks, state.most_memory_clock),
    }
    for key, (wanted, most) in clocks.items():
        if isinstance(wanted, tuple) and most and wanted[1] > most:
            value, takes = f"{wanted[0]} to {wanted[1]}", f"accepts 1 to {most:.0f} MHz"
            yield found.SETTING_UNFIT(key=key, value=value, index=target.index, takes=takes)


def _lacking(settings: GpuSettings, state: GpuState) -> dict[str, bool]:
    """Keys of the settings, and whether the GPU lacks what they set."""
    return {
        "gpu_power_limit": isinstance(settings.power_limit, int) and state.power is None,
        "gpu_compute_mode": settings.compute_mode is not None and not state.compute_mode,
        "gpu_ecc": settings.ecc is not None and state.ecc is None,
    }


def _other_managers(settings: GpuSettings, facts: NodeFacts) -> Iterator[Finding]:
    if settings.mig is None:
        return
    service = facts.services.get(MIG_MANAGER)
    if service and (service.enabled == "enabled" or service.active == "active"):
        yield found.OTHER_MANAGER(manager=MIG_MANAGER)
    elif facts.listed and facts.listed.mig_manager:
        yield found.OTHER_MANAGER(manager="NVIDIA's MIG manager, which runs in a pod,")
    if facts.operator_driver:
        yield found.OTHER_MANAGER(manager="NVIDIA's GPU Operator, whose driver this host has,")


def work_on(facts: NodeFacts, spared: frozenset[int], indexes: Sequence[int]) -> list[str]:
    """Work on these GPUs. Pods and containers with GPUs count for all: their GPU is not known."""
    if facts.gpu_pods:
        return [count_noun(facts.gpu_pods, "GPU pod")]
    if facts.gpu_containers:
        return [count_noun(facts.gpu_containers, "container")]
    gpus, states = own_gpus(facts), facts.listed.states if facts.listed else ()
    minors = {state.slot: state.minor for state in states}
    known = {index: minors.get(gpu.slot.lower()) for index, gpu in enumerate(gpus)}
    numbers = (index if known.get(index) is None else known[index] for index in indexes)
    nodes = {f"/dev/nvidia{number}" for number in numbers}
    busy = [
        each
        for each in gpu_work(facts, spared)
        if nodes & {*each.devices} or _in_part(each.devices)
    ]
    return [str(process) for process in busy[:MAX_SHOWN]]


def _in_part(devices: Sequence[str]) -> bool:
    """True if a process has a MIG instance open."""
    return any(device.startswith("/dev/nvidia-caps/") for device in devices)


def check_disruption(
    settings: GpuSettings,
    context: RoleContext,
    changed: Mapping[int, str],
    resets: Sequence[int],
) -> list[Finding]:
    """Blockers for GPUs in use, and for resets that the settings do not allow. `changed`: what
    disturbs programs, by index of a GPU; `resets`: GPUs that must be reset."""
    if not changed:
        return []
    what = "; ".join(dict.fromkeys(changed.values()))
    work = work_on(context.facts, context.spared, list(changed))
    problems = [found.GPU_HAS_WORK(change=what, work=", ".join(work))] if work else []
    if resets and not settings.allow_reset and settings.lines is None:
        gpus = "GPU " + ", ".join(map(str, resets))
        needed = "; ".join(dict.fromkeys(changed[index] for index in resets))
        problems.append(found.RESET_NEEDED(change=needed, gpus=gpus))
    return problems
