"""Hosts, groups and waves of a planned run. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.host.upgrade_settings import Subject, UpgradeSettings
from gpufleet.host.upgrade_state import HostState, Kind, Phase


@dataclass(frozen=True, slots=True)
class HostView:
    """The view of one host from which a run is planned."""

    name: str
    model: str = ""  # of its GPUs, with their number
    distribution: str = ""
    kernel: str = ""
    before: str | None = None  # version of the driver's packages
    loaded: str | None = None
    target: str | None = None
    work: tuple[str, ...] = ()  # on its GPUs
    refusals: tuple[str, ...] = ()  # why it cannot be changed
    warnings: tuple[str, ...] = ()  # the catalog does not have its target
    place: str = ""  # value of the key of upgrade_wave_by
    kubelet: bool = False
    machine: str = ""  # its /etc/machine-id
    reached: bool = True
    taken: bool = False  # gpufleet cordoned its node, or its roll-back failed
    unplaced: str = ""  # why its node is not known
    state: HostState | None = None  # the state that an earlier run or process left on it

    @property
    def group(self) -> str:
        return f"{self.model}, {self.distribution}, {self.kernel}"

    @property
    def converged(self) -> bool:
        """True if packages and module have the target version."""
        return bool(self.target) and self.before == self.target == self.loaded

    @property
    def left_behind(self) -> bool:
        """True if an earlier run or process left it out of service."""
        state = self.state
        return self.taken or bool(state and (state.phase is Phase.STUCK or state.behind))

    @property
    def unfinished(self) -> HostState | None:
        """The state of a run that has not finished this host."""
        state = self.state
        if state is None or state.phase is Phase.STUCK or (state.ended and not state.out):
            return None
        return state


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A host that the run does not change. `blocked`: it lacks the target, and is not left alone on
    purpose."""

    name: str
    reason: str
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The hosts of a run with their states, in the order of the waves, and the hosts left out.
    `unreached`: hosts that do not answer and may be out of service; `behind`: hosts or nodes that
    earlier runs left out of service, and that this one does not change."""

    run: str
    kind: Kind
    subject: Subject
    hosts: dict[str, HostState]
    limits: UpgradeSettings  # of the run; max_unavailable is a number
    left_out: tuple[LeftOut, ...] = ()
    unreached: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    resumed: bool = False

    @property
    def waves(self) -> list[list[str]]:
        """The canaries, then the other waves."""
        numbers = sorted({state.wave for state in self.hosts.values()})
        return [[n for n, state in self.hosts.items() if state.wave == each] for each in numbers]

    @property
    def blocked(self) -> bool:
        """True if a host that should have the target is left out."""
        return any(each.blocked for each in self.left_out)
