"""The state of a run, folded from its record. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpufleet.upgrade.models import Plan
from gpufleet.upgrade.states import BAD, ENDED, OUT_OF_SERVICE, Event, State, after
from gpufleet.upgrade.versions import OtherVersion

FAILING = frozenset({State.FAILED, State.RESTORING, State.RESTORED, *BAD})
LAST = 1e15  # seconds since 1970: later times have no date
OVER = ("stopped", "finished", "aborted")  # no host is changed any more


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the record: of a host, or of the run where `host` is ""."""

    time: float  # seconds since 1970
    event: str
    host: str = ""
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {"time": self.time, "event": self.event}
        data |= {"host": self.host} if self.host else {}
        return data | ({"reason": self.reason} if self.reason else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Entry:
        """Raises KeyError, TypeError, ValueError or OverflowError for what is none."""
        time = float(data["time"])
        if not 0 <= time <= LAST:
            raise ValueError(f"{time} is no time")
        return cls(time, str(data["event"]), str(data.get("host", "")), str(data.get("reason", "")))


@dataclass(slots=True)
class Progress:
    """Where every host of a run is."""

    plan: Plan
    states: dict[str, State] = field(default_factory=dict)
    since: dict[str, float] = field(default_factory=dict)  # host -> time of its last event
    reasons: dict[str, str] = field(default_factory=dict)
    run: str = "begun"
    reason: str = ""  # of the run's last event
    commanded: set[str] = field(default_factory=set)  # hosts whose drain command was started
    failures: int = 0
    in_a_row: int = 0
    returned: set[str] = field(default_factory=set)  # hosts whose nodes have their earlier state

    def __post_init__(self) -> None:
        for host in self.plan.hosts:
            self.states.setdefault(host.name, State.WAITING)

    def add(self, entry: Entry) -> None:
        """Raises WrongEvent for one that cannot follow, OtherVersion for one that is not known."""
        if not entry.host:
            self.run, self.reason = entry.event, entry.reason
            return
        before, event = self.states[entry.host], _event(entry.event)
        state = after(before, event)
        self.states[entry.host] = state
        self.since[entry.host] = entry.time
        if entry.reason:
            self.reasons[entry.host] = entry.reason
        if event is Event.COMMAND_BEGAN:
            self.commanded.add(entry.host)
        elif event is Event.COMMAND_MISSING:
            self.commanded.discard(entry.host)
        elif event is Event.NODE_RETURNED:
            self.returned.add(entry.host)
        if state is State.FAILED:  # once: that its roll-back fails too is no second failure
            self.failures += 1
            self.in_a_row += 1
        elif state is State.DONE:
            self.in_a_row = 0

    def settle(self, now: float) -> None:
        """At the start of a process: nothing has happened after now, whatever clock has said so."""
        self.since = {name: min(time, now) for name, time in self.since.items()}

    def of(self, *states: State) -> list[str]:
        """The hosts in one of these states, in the order of the waves."""
        return [
            name for wave in self.plan.waves for name in wave.hosts if self.states[name] in states
        ]

    @property
    def out_of_service(self) -> int:
        return sum(state in OUT_OF_SERVICE for state in self.states.values())

    @property
    def over(self) -> bool:
        return self.run in OVER

    @property
    def at_work(self) -> list[str]:
        """Hosts that are out of service and not left behind: they are to be finished first."""
        return [
            name
            for name, state in self.states.items()
            if state in OUT_OF_SERVICE and state not in ENDED
        ]

    def first_done(self) -> dict[str, float]:
        """Group -> when its first host was changed and returned."""
        found: dict[str, float] = {}
        for host in self.plan.hosts:
            if self.states[host.name] is State.DONE:
                time = self.since[host.name]
                found[host.group] = min(found.get(host.group, time), time)
        return found

    def lost_groups(self) -> frozenset[str]:
        """Groups whose canary failed; where it was passed over, the host that took its place."""
        bad = [host for host in self.plan.hosts if self.states[host.name] in FAILING]
        if not bad:
            return frozenset()
        canaries = {name for wave in self.plan.waves if wave.canary for name in wave.hosts}
        proven = self.first_done()
        return frozenset(
            host.group for host in bad if host.name in canaries or host.group not in proven
        )


def _event(text: str) -> Event:
    """Raises OtherVersion."""
    try:
        return Event(text)
    except ValueError as error:
        raise OtherVersion(f"its event {text!r} is not known") from error


def folded(plan: Plan, entries: Iterable[Entry]) -> Progress:
    """Raises WrongEvent, or KeyError for a host that the plan lacks."""
    progress = Progress(plan)
    for entry in entries:
        progress.add(entry)
    return progress
