"""A run in the process that executes it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gpufleet.core.findings import Finding
from gpufleet.core.metrics import write_metrics
from gpufleet.core.visible import one_line
from gpufleet.drain.operations.cluster import ClusterNodes
from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.host.upgrade_state import HostState, Phase
from gpufleet.kube.findings import LEASE_LOST
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.decide import Host
from gpufleet.upgrade.models import Plan
from gpufleet.upgrade.operations.metrics import UPGRADE_METRICS_PREFIX, upgrade_metrics_text
from gpufleet.upgrade.operations.result import StepResult
from gpufleet.upgrade.show import event_of

Work = Future[None]


def first_done(works: Collection[Work], seconds: float) -> set[Work]:
    """The finished futures, as soon as one finishes or the time is over."""
    return wait(works, seconds, return_when=FIRST_COMPLETED)[0]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds. `poll`, `longest`: between tries with a host; `silence`: minimum wait for a host or
    a cluster that does not answer."""

    poll: float = 3.0
    longest: float = 30.0
    silence: float = 600.0
    tick: float = 1.0
    now: Callable[[], float] = time.time
    steady: Callable[[], float] = time.monotonic  # a clock that cannot be set
    sleep: Callable[[float], None] = time.sleep
    first_done: Callable[[Collection[Work], float], set[Work]] = first_done


USUAL = Timing()


class Steps(Protocol):
    """Access to hosts."""

    def step(self, name: str, step: str, version: str, reboot: str) -> StepResult: ...

    def write(self, name: str, state: HostState) -> None:
        """Write the state to the host. Raises Stopped if it does not answer, or if another run
        holds it."""


def passing_reason(error: ClusterProblem) -> str:
    """Why a cluster does not answer, if it may answer later. Raises the error if the Lease is lost,
    as another run is then at work there."""
    if any(each.code == LEASE_LOST.code for each in error.findings):
        raise error
    return one_line("; ".join(each.message for each in error.findings))


class UpgradeRun:
    """One run in one process. No two workers act on the same host."""

    def __init__(
        self,
        plan: Plan,
        settings: Mapping[str, UpgradeSettings],
        steps: Steps,
        say: Callable[[str], None],
        clusters: Mapping[str, ClusterNodes],
        *,
        reboots: Mapping[str, str] | None = None,
        timing: Timing = USUAL,
        metrics: Path | None = None,
        inventory: str = "",
    ) -> None:
        """`clusters`: of hosts that are nodes; `reboots`: node_reboot for the steps."""
        self.plan, self.settings, self.steps, self.say = plan, settings, steps, say
        self.clusters, self.timing, self.reboots = clusters, timing, reboots or {}
        self.metrics, self.inventory = metrics, inventory
        self.states = dict(plan.hosts)
        self.asked = ""  # "pause" or "abort"
        self.idle: set[str] = set()  # drained hosts that nothing uses
        self.commanded: set[str] = set()  # hosts after a successful upgrade_drain_command
        self.silent: set[str] = set()  # hosts that do not answer
        self.given_up: dict[str, Finding] = {}  # hosts that this process cannot finish -> why
        self.fresh: set[str] = set()  # hosts whose change this process began, not an earlier one
        self._guard = threading.Lock()
        self._shown: dict[str, str] = {}  # host -> last printed reason of its wait
        self._waits: dict[str, float] = {}  # host -> start of its wait, by the steady clock
        self._later: dict[str, tuple[float, float]] = {}  # host -> next try, and the pause after it
        self._posts = True
        for cluster in set(clusters.values()):
            cluster.is_aborted = lambda: bool(self.asked)
            cluster.goes_back = self.goes_back

    @property
    def goes_back(self) -> bool:
        """True if it rolls another run back."""
        return self.plan.kind == "rollback"

    @property
    def now(self) -> float:
        return self.timing.now()

    def write(self, name: str, phase: Phase, why: str = "", **more: Any) -> None:
        """Write a host's state to the host before any act on it. Raises Stopped."""
        state = self.states[name].moved(phase, self.now, why, **more)
        self.steps.write(name, state)
        before, self.states[name] = self.states[name], state
        with self._guard:
            for known in (self._waits, self._later, self._shown):
                known.pop(name, None)
        if phase is before.phase and state.out == before.out:
            return
        checks = phase is Phase.CHANGING and state.before == state.target  # nothing is installed
        word = "checking" if checks and state.subject != "reboot" else phase.value
        word += "" if state.out or not before.out else ", in service"
        reason = f": {state.why}" if why else ""
        self.say(f"{name}: {word}{reason}")
        self.report(running=True)
        if name in self.clusters and phase is not before.phase:
            self._post(name, phase, state.why if why else "")

    def report(self, *, running: bool) -> None:
        """Write the metrics of the run to the file of --metrics."""
        if self.metrics:
            text = upgrade_metrics_text(self.plan, self.states, self.inventory, running=running)
            try:
                write_metrics(self.metrics, text, UPGRADE_METRICS_PREFIX)
            except OSError as error:  # the hosts matter more
                self.say(f"{self.metrics} cannot be written: {error.strerror or error}")

    def _post(self, name: str, phase: Phase, why: str) -> None:
        """Create an event. A run continues without events. If they are forbidden, it stops
        trying."""
        cluster = self.clusters[name]
        body = event_of(cluster.nodes[name], self.plan.run, phase, why, self.now)
        if not (body and self._posts):
            return
        try:
            cluster.post_event(body)
        except ClusterProblem as error:
            self.say(f"{name}: no event on its node: {passing_reason(error)}")
            self._posts = not isinstance(error, ApiError)

    def hosts(self, busy: set[str], ours: set[str]) -> list[Host]:
        """The current state of the hosts. `busy`: at work; `ours`: their nodes have our cordon."""
        now = self.timing.steady()
        return [
            Host(
                name,
                state,
                ours=name in ours,
                idle=name in self.idle,
                busy=name in busy,
                due=name not in busy and self._later.get(name, (0.0, 0.0))[0] <= now,
                reached=name not in self.silent,
                given_up=name in self.given_up,
            )
            for name, state in self.states.items()
        ]

    def step(self, name: str, step: str, version: str) -> StepResult:
        return self.steps.step(name, step, version, self.reboots.get(name, ""))

    def waits(self, name: str, reason: str, seconds: float) -> bool:
        """True if a host may be waited for any longer, counted from this process's first wait for
        it. It is then tried again later. The reason is printed once."""
        now = self.timing.steady()
        with self._guard:
            if now - self._waits.setdefault(name, now) >= seconds:
                return False
        self.later(name, reason)
        return True

    def later(self, name: str, reason: str, *, soon: bool = False) -> None:
        """Try a host again after a pause, which grows unless a change is expected `soon`."""
        reason = one_line(reason)
        with self._guard:
            last = 0.0 if soon else self._later.get(name, (0.0, 0.0))[1]
            pause = min(last * 1.5, self.timing.longest) or self.timing.poll
            self._later[name] = (self.timing.steady() + pause, pause)
            if self._shown.get(name) == reason:
                return
            self._shown[name] = reason
        self.say(f"{name}: waiting: {reason}")

    def silence(self, name: str) -> float:
        """Seconds to wait for a host, or its cluster, that does not answer."""
        return max(0 if self.asked == "abort" else self.settings[name].wait, self.timing.silence)
