"""Judges the health of GPUs by hardware.yaml, and by peers of the same model. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, Literal

from pydantic import Field, model_validator

from gpufleet.core.entries import Entry, Sourced, entry_loader
from gpufleet.doctor.models import load_steps
from gpufleet.facts.health import GpuHealth, HostHealth, KernelEvent
from gpufleet.monitoring.xids import load_sxids, load_xids

DAY = 86_400  # seconds
LEAST_PEERS = 2  # GPUs that an outlier is compared with
RECOVERY_XID = 154  # its line ends with the action that the driver asks for now
_RECOVERY = re.compile(r" to 0x[0-9a-f]+ \(([\w ]+)\)", re.IGNORECASE)
NOT_SAID = (
    "This driver does not say if the GPU was reset since then, so the verdict stays until the "
    "driver is loaded again or the host is rebooted."
)
Value = bool | int | str


class HardwareRow(Sourced):
    """The fields of a check and of an event. hardware.yaml explains them."""

    id: str = Field(pattern=r"(gpu|host)\.[a-z0-9_]+")
    title: str
    severity: Literal["warning", "critical"]
    meaning: str
    after: tuple[str, ...] = ()
    steps: tuple[str, ...]

    @model_validator(mode="after")
    def _check_steps(self) -> HardwareRow:
        if unknown := set(self.steps) - load_steps().steps.keys():
            raise ValueError(f"{self.id} names unknown steps: {', '.join(sorted(unknown))}")
        return self


class HardwareCheck(HardwareRow):
    """A check of one reading."""

    reads: str
    among: tuple[Value, ...] = Field((), alias="is")
    is_not: tuple[Value, ...] = ()
    has: str = ""
    matches: str = ""
    above: int | str | None = None
    below: int | str | None = None
    differs_from: str = ""
    peers: Literal["", "below", "differ"] = ""
    slack: int = 0
    same_host: bool = False
    when: tuple[str, ...] = ()
    shared: bool = False
    since: int | None = None

    @model_validator(mode="after")
    def _check_condition(self) -> HardwareCheck:
        given = [self.among, self.is_not, self.has, self.matches, self.differs_from, self.peers]
        bounds = [bound is not None for bound in (self.above, self.below)]
        if sum(map(bool, given)) + sum(bounds) != 1:
            raise ValueError(f"{self.id} needs one condition")
        return self


class EventCheck(HardwareRow):
    """A check of the kernel's log."""

    kind: Literal["xid", "sxid"]
    codes: tuple[int, ...] = ()
    now: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    other: bool = False
    days: int | None = None
    settled: bool = False


class HardwareChecks(Entry):
    """hardware.yaml"""

    checks: tuple[HardwareCheck, ...]
    events: tuple[EventCheck, ...]


load_hardware = entry_loader(HardwareChecks, "doctor/hardware")


@dataclass(frozen=True, slots=True)
class HardwareProblem:
    """A failed check of a GPU, or of an NVSwitch if it is of the host."""

    check: str
    severity: Literal["warning", "critical"]
    slot: str  # PCI address
    read: str  # the reading or the errors, for people
    meaning: str
    steps: tuple[str, ...]


def judge_gpu_health(health: HostHealth, peers: Sequence[GpuHealth]) -> tuple[HardwareProblem, ...]:
    """The failed checks of a host's GPUs. `peers`: GPUs of other hosts."""
    gpus = [_with_recovery(gpu, health.events) for gpu in health.gpus]
    of_readings = (
        problem
        for gpu in gpus
        for problem in _judge_gpu(gpu, [each for each in gpus if each is not gpu], peers)
    )
    return (*of_readings, *_judge_events(health, gpus))


def _with_recovery(gpu: GpuHealth, events: Iterable[KernelEvent]) -> GpuHealth:
    """The GPU with the recovery action of its last XID 154, if nvidia-smi does not name one."""
    actions = (
        action[1]
        for event in events
        if event.kind == "xid" and event.code == RECOVERY_XID and event.slot == gpu.slot
        for action in _RECOVERY.finditer(event.text)
    )
    last = next(iter(list(actions)[-1:]), None)
    return gpu if gpu.recovery_action or last is None else replace(gpu, recovery_action=last)


def _judge_gpu(
    gpu: GpuHealth, near: Sequence[GpuHealth], far: Sequence[GpuHealth]
) -> Iterator[HardwareProblem]:
    """`near`: the other GPUs of its host; `far`: GPUs of other hosts."""
    for check in load_hardware().checks:
        value = _value(check, gpu)
        if value is None:
            continue
        others = (*near, *(() if check.same_host else far)) if check.peers or check.shared else ()
        compared = [each for each in others if each.model == gpu.model and gpu.model]
        values = [found for each in compared if (found := _value(check, each)) is not None]
        read = _compare_peers(check, value, values) if check.peers else _fail(check, value, gpu)
        if read and not (check.shared and _common(values, least=1) == value):
            yield _problem(check, gpu.slot, read)


def _value(check: HardwareCheck, gpu: GpuHealth) -> Any:
    """The reading of a check, or None if it is not available or does not count now."""
    return getattr(gpu, check.reads) if all(getattr(gpu, when) for when in check.when) else None


def _common(values: Collection[Value], least: int) -> Value | None:
    """The value of more than half of the peers, if there are `least` of them."""
    if len(values) < least:
        return None
    value, count = Counter(values).most_common(1)[0]
    return value if count > len(values) / 2 else None


def _compare_peers(check: HardwareCheck, value: Any, values: Collection[Value]) -> str:
    """The reading as text if the check fails, else ""."""
    common: Any = _common(values, LEAST_PEERS)
    if common is None or value == common:
        return ""
    if check.peers == "below" and value >= common * (100 - check.slack) / 100:
        return ""
    return f"{_words(value)}, and {_words(common)} on its peers"


def _fail(check: HardwareCheck, value: Any, gpu: GpuHealth) -> str:
    """The reading as text if the check fails, else ""."""
    if check.has:
        return check.has if check.has in value else ""
    if check.matches:
        return value if re.search(check.matches, value, re.IGNORECASE) else ""
    if check.among or check.is_not:
        wrong = value in check.among if check.among else value not in check.is_not
        return _words(value) if wrong else ""
    return _fail_bound(check, value, gpu)


def _fail_bound(check: HardwareCheck, value: Any, gpu: GpuHealth) -> str:
    """The reading, if a number or another reading makes it a failure, else ""."""
    wrong: Callable[[Any], bool]
    if check.above is not None:
        bound, wrong = check.above, lambda limit: value > limit
    elif check.below is not None:
        bound, wrong = check.below, lambda limit: value < limit
    else:
        bound, wrong = check.differs_from, lambda limit: value != limit
    limit = getattr(gpu, bound) if isinstance(bound, str) else bound
    if limit is None or not wrong(limit):
        return ""
    return f"{_words(value)}, {bound} is {_words(limit)}" if bound != limit else _words(value)


def _words(value: Value) -> str:
    return str(value) if not isinstance(value, bool) else "yes" if value else "no"


def _problem(check: HardwareRow, slot: str, read: str) -> HardwareProblem:
    return HardwareProblem(check.id, check.severity, slot, read, check.meaning, check.steps)


def _judge_events(health: HostHealth, gpus: Iterable[GpuHealth]) -> Iterator[HardwareProblem]:
    """One problem for each check and each GPU or NVSwitch, with all of its errors."""
    found: dict[tuple[str, str], list[KernelEvent]] = {}
    checks = {check.id: check for check in load_hardware().events}
    for event in health.events:
        if (check := _check_of(event)) and not _is_past(event, check, health.read_at):
            found.setdefault((check.id, event.slot), []).append(event)
    readable = {gpu.slot: gpu for gpu in gpus if not gpu.trouble}
    for (name, slot), of_slot in found.items():
        problem = _problem(checks[name], slot, _read_events(of_slot))
        gpu = readable.get(slot)
        yield _settle(problem, gpu) if gpu and checks[name].settled else problem


def _settle(problem: HardwareProblem, gpu: GpuHealth) -> HardwareProblem:
    """The problem with what the driver says of its end."""
    if gpu.recovery_action == "None":
        meaning = f"{problem.meaning} The driver now asks for no recovery."
        return replace(problem, severity="warning", meaning=meaning)
    if gpu.recovery_action is None:
        return replace(problem, meaning=f"{problem.meaning} {NOT_SAID}")
    return problem


def _is_past(event: KernelEvent, check: EventCheck, now: int | None) -> bool:
    """True if an event is older than the days that count for its check."""
    if check.days is None or event.time is None or now is None:
        return False
    return now - event.time > check.days * DAY


def _check_of(event: KernelEvent) -> EventCheck | None:
    """The check that an event fails, or None if it is of no concern."""
    xids = load_xids()
    if event.kind == "xid":
        now, name = xids.resolution(event.code, event.text), xids.class_of(event.code)
    else:
        now, name = load_sxids().resolution(event.code, fatal=bool(event.fatal)), ""
    for check in load_hardware().events:
        known = event.code in check.codes or now in check.now or name in check.classes
        if check.kind == event.kind and (known or (check.other and now is None)):
            return check
    return None


def _read_events(events: Sequence[KernelEvent]) -> str:
    """The errors, each code once with its meaning, and the time of the last one."""
    catalog = load_xids() if events[0].kind == "xid" else load_sxids()
    name = "XID" if events[0].kind == "xid" else "SXid"
    counts = Counter(event.code for event in events)
    parts = [
        f"{name} {code}{f' x{count}' if count > 1 else ''}"
        + (f" ({meaning})" if (meaning := catalog.meaning(code)) else "")
        for code, count in counts.items()
    ]
    times = [event.time for event in events if event.time is not None]
    if not times:
        return ", ".join(parts)
    last = datetime.fromtimestamp(max(times), timezone.utc)
    return f"{', '.join(parts)}; last at {last:%Y-%m-%d %H:%M} UTC"
