"""Plans layout and settings of the GPUs of one host. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpufleet.core.findings import Finding
from gpufleet.driver.files import own_gpus
from gpufleet.facts.gpu import LAYOUT_FILE, GpuState
from gpufleet.gpu import findings as found
from gpufleet.gpu.checks import WantedGpu, check_disruption, check_targets
from gpufleet.gpu.files import GPUS_UNIT, layout_files, parse_words, wanted_words
from gpufleet.gpu.layouts import OFF, Layout, layout_text, order_layout
from gpufleet.gpu.models import GpuEntry, load_mig_catalog
from gpufleet.gpu.settings import GpuSettings
from gpufleet.host.file_write import FileWrite
from gpufleet.role.protocol import RoleContext

WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class GpuChange:
    """The difference on a GPU: key -> value now and wanted."""

    index: int
    slot: str
    differs: Mapping[str, tuple[str, str]]

    @property
    def disturbs(self) -> bool:
        """True if the change interrupts programs."""
        return "mig" in self.differs or self.switches_ecc

    @property
    def switches_ecc(self) -> bool:
        """True if the present ECC mode differs, not only the one that waits for a reset."""
        now, wanted = self.differs.get("ecc", ("", ""))
        return now.partition(",")[0] != wanted

    @property
    def text(self) -> str:
        parts = (f"{key} {now} -> {wanted}" for key, (now, wanted) in self.differs.items())
        return f"GPU {self.index}: {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class GpuPlan:
    """The plan of one host. `lines`: wanted words by slot; `known`: the GPUs' state was read;
    `reloads`: the run loads the driver, which takes layout and settings back; `runs`: the unit ran
    since the boot and is enabled; `drained`: an upgrade has drained the host, so that its GPUs may
    be reset."""

    lines: Mapping[str, str]
    before: str | None  # None if not known
    after: str
    changes: tuple[GpuChange, ...] = ()
    resets: tuple[int, ...] = ()  # GPUs whose change needs a reset, or else a reboot
    wanted_files: tuple[FileWrite, ...] = ()
    files: tuple[FileWrite, ...] = ()  # those that differ
    known: bool = True
    reloads: bool = False
    runs: bool = True
    drained: bool = False

    @property
    def disturbs(self) -> bool:
        """True if a change interrupts programs."""
        return any(change.disturbs for change in self.changes)

    @property
    def applies(self) -> bool:
        """True if the program must run."""
        return bool(self.changes or self.files or self.reloads or not self.known or not self.runs)


def plan_gpus(
    settings: GpuSettings, context: RoleContext
) -> tuple[GpuPlan | None, tuple[Finding, ...]]:
    """Plan the GPUs of a host, with findings. Without a key, a recorded layout is only kept."""
    facts, settings = context.facts, settings.of_lines
    if not settings.manages:
        return _kept(context)
    states = {state.slot: state for state in facts.listed.states} if facts.listed else {}
    targets = [
        WantedGpu(index, gpu, settings.layout_of(index), states.get(gpu.slot.lower()))
        for index, gpu in enumerate(own_gpus(facts))
    ]
    problems = check_targets(settings, targets, context)
    if any(problem.blocks for problem in problems):
        return None, tuple(problems)
    lines = {
        target.gpu.slot.lower(): words
        for target in targets
        if (words := wanted_words(settings, _ordered(target), target.index))
    }
    changes = _changes(targets, lines)
    resets = _resets(targets, changes)
    problems += _disruption(settings, changes, resets, context)
    wanted = layout_files(lines)
    service = facts.services.get(GPUS_UNIT)
    plan = GpuPlan(
        lines,
        before=_summary([each.state.devices for each in targets if each.state]) if states else None,
        after=_summary([_layout_after(target) for target in targets]),
        changes=changes,
        resets=resets,
        wanted_files=wanted,
        files=tuple(file for file in wanted if not file.is_on(facts)),
        known=all(target.state for target in targets),
        reloads=context.loads_driver,
        runs=bool(service and service.active == "active" and service.enabled == "enabled"),
        drained=settings.lines is not None,
    )
    return plan, tuple(problems)


def _kept(context: RoleContext) -> tuple[GpuPlan | None, tuple[Finding, ...]]:
    """The plan of a host whose inventory has no key: the recorded layout, made again if the driver
    is loaded again."""
    entry = context.facts.provenance.entry(GpuEntry)
    file = context.facts.files.get(LAYOUT_FILE)
    if not entry.exists or file is None or file.content is None:
        return None, ()
    version = entry.version or WHOLE
    reloads = context.loads_driver
    plan = GpuPlan(entry.gpus, version, version, reloads=reloads)
    return plan, (found.LAYOUT_KEPT(layout=version),)


def _ordered(target: WantedGpu) -> Layout | None:
    model = load_mig_catalog().model(target.gpu.device)
    if not target.layout or model is None:
        return target.layout
    return order_layout(target.layout, model, load_mig_catalog())


def _changes(targets: Sequence[WantedGpu], lines: Mapping[str, str]) -> tuple[GpuChange, ...]:
    """The differences on GPUs with a known state."""
    found_changes = []
    for target in targets:
        words = parse_words(lines.get(target.gpu.slot.lower(), ""))
        if target.state and (differs := gpu_differences(target.state, words)):
            found_changes.append(GpuChange(target.index, target.gpu.slot, differs))
    return tuple(found_changes)


def gpu_differences(state: GpuState, wanted: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Key -> value now and wanted. Locked clocks cannot be read: the unit sets them."""
    power = state.default_power if wanted.get("power") == "default" else state.power
    if wanted.get("power", "default") != "default":
        power = float(wanted["power"])
    now_wanted = {
        "mig": (_mig_now(state), layout_text(_split(wanted["mig"])) if "mig" in wanted else None),
        "ecc": (_ecc_now(state), {"1": "on", "0": "off"}.get(wanted.get("ecc", ""))),
        "power": (_watts(state.power), _watts(power) if "power" in wanted else None),
        "compute": (state.compute_mode, wanted.get("compute")),
    }
    return {
        key: (now or "unknown", value)
        for key, (now, value) in now_wanted.items()
        if value is not None and value != now and not (key == "mig" and state.mig is None)
    }


def _mig_now(state: GpuState) -> str:
    """The current layout, or the state between two layouts."""
    if state.mig != state.pending_mig:
        return f"MIG {_switch(state.mig)}, {_switch(state.pending_mig)} after a reset"
    return layout_text(state.devices) if state.devices or not state.mig else "MIG on, no instances"


def _ecc_now(state: GpuState) -> str:
    """The ECC mode, or the modes before and after the next reset."""
    now, later = _switch(state.ecc), _switch(state.pending_ecc)
    return now if now == later else f"{now}, {later} after a reset"


def _split(layout: str) -> Layout:
    return () if layout == OFF else tuple(layout.split(","))


def _switch(on: bool | None) -> str:
    return {True: "on", False: "off"}.get(on, "unknown") if on is not None else "unknown"


def _watts(power: float | None) -> str:
    return "unknown" if power is None else f"{power:.0f} W"


def _layout_after(target: WantedGpu) -> Layout:
    """The wanted layout, or the current one if its layout is not managed."""
    if target.layout is not None:
        return target.layout
    return target.state.devices if target.state else ()


def _summary(layouts: Sequence[Layout]) -> str:
    """The layouts of a host in short: whole, 1g.10gb:7, or "2 layouts"."""
    texts = {layout_text(layout) if layout else WHOLE for layout in layouts}
    return texts.pop() if len(texts) == 1 else f"{len(texts)} layouts" if texts else WHOLE


def _resets(targets: Sequence[WantedGpu], changes: Sequence[GpuChange]) -> tuple[int, ...]:
    """The GPUs that must be reset: for another ECC mode, and on Ampere for another MIG mode."""
    catalog, by_index = load_mig_catalog(), {target.index: target for target in targets}
    found_resets = []
    for change in changes:
        target = by_index[change.index]
        model = catalog.model(target.gpu.device)
        switches = "mig" in change.differs and target.switches and model and model.resets
        if switches or change.switches_ecc:
            found_resets.append(change.index)
    return tuple(found_resets)


def _disruption(
    settings: GpuSettings,
    changes: Sequence[GpuChange],
    resets: Sequence[int],
    context: RoleContext,
) -> list[Finding]:
    """Findings about changes that interrupt programs or need a reset. The driver's own role answers
    for a run that loads it."""
    if context.loads_driver:
        return []
    disturbing = {change.index: change.text for change in changes if change.disturbs}
    return check_disruption(settings, context, disturbing, resets)


def changes_devices(plan: GpuPlan | None) -> bool:
    """True if MIG devices may appear or disappear in the run, so that a CDI spec is outdated."""
    if plan is None or not any("mig=" in words for words in plan.lines.values()):
        return False
    return not plan.known or any("mig" in each.differs for each in plan.changes)
