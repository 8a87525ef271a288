"""A run while a process carries it out: its record, its hosts, and what reaches them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from gpufleet.core.findings import Finding
from gpufleet.core.visible import one_line
from gpufleet.kube.findings import LEASE_LOST
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.metrics import metrics_text
from gpufleet.upgrade.models import Plan
from gpufleet.upgrade.operations.children import Children, Result
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.operations.hooks import Hooks
from gpufleet.upgrade.operations.metrics_file import write_metrics
from gpufleet.upgrade.operations.record_file import Unwritten
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.operations.timing import Clock
from gpufleet.upgrade.progress import Entry, Progress
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.upgrade.states import Event, State

LONGEST_REASON = 1000  # characters: it may quote hosts and clusters
POLL, LONGEST = 3.0, 30.0  # seconds between two looks at hosts that are waited for
UNREACHED = 600.0  # seconds, at least, to wait for a host or a cluster that does not answer
UNASKED = 180.0  # seconds without a look that do not count into the wait for a cluster
THREADS = 16
NO_CLUSTERS: Mapping[str, ClusterNodes] = {}

Key = TypeVar("Key")
Value = TypeVar("Value")


def passing(error: ClusterProblem) -> str:
    """Why a cluster does not answer now, for one that may answer later. Raises the error where the
    Lease is lost: another run is at work there."""
    if any(each.code == LEASE_LOST.code for each in error.findings):
        raise error
    return one_line("; ".join(each.message for each in error.findings))


class Run:
    """One run in one process."""

    def __init__(
        self,
        store: Store,
        plan: Plan,
        settings: Mapping[str, UpgradeSettings],
        children: Children,
        say: Callable[[str], None],
        clusters: Mapping[str, ClusterNodes] = NO_CLUSTERS,
    ) -> None:
        """`clusters`: of the hosts that are nodes."""
        self.store, self.plan, self.settings = store, plan, settings
        self.children, self.say, self.clusters = children, say, clusters
        self.clock = Clock()
        self.progress: Progress = store.progress()
        self.progress.settle(self.clock.now())
        self.hooks = Hooks()
        self.stopping = threading.Event()
        self._guard = threading.Lock()  # clusters are at work side by side
        self.unreturned: dict[str, Finding] = {}  # why a host could not be returned to service
        # hosts that their cluster keeps from being begun -> since when it does not answer, and the
        # last look at it
        self.silent: dict[tuple[str, str], tuple[float, float]] = {}  # host, what was asked
        self.tried: set[str] = set()  # hosts that the last steps left where they were
        # hosts whose nodes are to be marked as left behind; again where a process did it before
        stuck = [name for name in self.progress.of(State.STUCK) if name in clusters]
        self.unmarked = {name: self.progress.reasons.get(name, "") for name in stuck}
        self._shown: dict[str, str] = {}  # host -> what it waits for, as last said
        self._waits: dict[str, float] = {}  # host -> since when, by the clock of this process
        self._pause = POLL
        self._posts = True  # events on nodes
        order = store.head()[0]
        self.metrics = Path(order.metrics) if order.metrics else None
        self.inventory, self._reboots = order.inventory, order.reboots
        for cluster in clusters.values():
            cluster.stopping = self.stopping
            cluster.is_aborted = lambda: self.store.request == "abort"
            cluster.goes_back = self.goes_back

    def stop(self) -> None:
        """End soon: what is under way on hosts is ended in order, and is continued by a resume."""
        self.stopping.set()
        self.children.end()
        self.hooks.end()

    def write(self, event: str | Event, host: str = "", reason: str = "") -> None:
        """Write down an event, then count it. The reason may quote hosts and clusters. Raises
        Unwritten; then the run ends, also what is under way side by side."""
        try:
            with self._guard:
                self._write(event, host, reason)
        except Unwritten:
            self.stop()
            raise

    def _write(self, event: str | Event, host: str, reason: str) -> None:
        reason = one_line(reason)[:LONGEST_REASON]
        text = event.value if isinstance(event, Event) else event
        entry = Entry(self.clock.now(), text, host, reason)
        self.store.append(entry)
        self.progress.add(entry)
        self._waits.pop(host, None)
        shown = f": {reason}" if reason else ""
        self.say(f"{host or 'run'}: {text}{shown}")
        self.report(running=True)
        if host in self.clusters and self._posts:
            self._post(host, Event(text), reason)

    def report(self, *, running: bool) -> None:
        """Write the metrics of the run, where a file is named for them."""
        if self.metrics:
            text = metrics_text(self.store.name, self.progress, self.inventory, running=running)
            try:
                write_metrics(self.metrics, text)
            except OSError as error:  # the hosts matter more
                self.say(f"{self.metrics} cannot be written: {error.strerror or error}")

    def _post(self, host: str, event: Event, reason: str) -> None:
        """Without events a run goes on; where they are forbidden, no more are tried."""
        try:
            self.clusters[host].post_event(host, event, reason)
        except ClusterProblem as error:
            self.say(f"{host}: no event on its node: {passing(error)}")
            self._posts = not isinstance(error, ApiError)

    def each(self, call: Callable[[Key], Value], items: Sequence[Key]) -> dict[Key, Value]:
        """Call a function for each host, or cluster, side by side."""
        with ThreadPoolExecutor(THREADS) as pool:
            return dict(zip(items, pool.map(call, items), strict=True))

    def step(self, step: str, versions: Mapping[str, str]) -> dict[str, Result]:
        """One process for each version of the driver, and node_reboot, side by side."""
        hosts: dict[tuple[str, str], list[str]] = {}
        for name, version in versions.items():
            hosts.setdefault((version, self._reboots.get(name, "")), []).append(name)
        if not hosts:
            return {}

        def one(group: tuple[str, str]) -> dict[str, Result]:
            version, reboot = group
            return self.children.step(step, hosts[group], version, reboot=reboot)

        with ThreadPoolExecutor(len(hosts)) as pool:
            found = list(pool.map(one, hosts))
        return {name: result for part in found for name, result in part.items()}

    def may_wait(self, name: str, reason: str, seconds: float | None = None) -> bool:
        """Whether a host may be waited for any longer, by default `upgrade_wait` since the first
        look of this process that had to wait; the reason is said once. Time in which the process
        was not there, or the machine was suspended, does not count: nobody could see the end."""
        limit = self.settings[name].wait if seconds is None else seconds
        now = time.monotonic()
        if now - self._waits.setdefault(name, now) >= limit:
            return False
        self.say_waits(name, reason)
        return True

    def is_silent_for_long(
        self, name: str, limit: float, asked: str = "", *, since: float | None = None
    ) -> bool:
        """Whether a cluster has not answered for a host in so many seconds, of which none counts
        that nobody asked in. To be called at each look that it does not answer; `since`: when the
        look, or its round, began; `asked`: about what besides its nodes."""
        now = self.clock.now()
        since = now if since is None else since
        began, last = self.silent.get((name, asked), (since, since))
        began += since - last if since - last > UNASKED else 0
        self.silent[name, asked] = (began, now)
        return now - began >= limit

    def round_over(self, hosts: Iterable[str], asked: str = "") -> None:
        """Of a cluster that does not answer: how long the round took was no time without a look."""
        for name in hosts:
            if found := self.silent.get((name, asked)):
                self.silent[name, asked] = (found[0], self.clock.now())

    def answered(self, hosts: Iterable[str], asked: str = "") -> None:
        """The cluster of these hosts has answered."""
        for name in hosts:
            self.silent.pop((name, asked), None)

    def say_waits(self, name: str, reason: str) -> None:
        """Say once what a host waits for."""
        if self._shown.get(name) != reason:
            self._shown[name] = reason
            self.say(f"{name}: waiting: {one_line(reason)}")

    def pause(self, *, idle: bool, moving: bool = False) -> None:
        """After a round: wait where nothing has become of any host, longer each time. `moving`:
        something will soon, because pods are on their way."""
        if not idle or moving:
            self._pause = POLL
        if not idle:
            return
        self.stopping.wait(self._pause)
        self._pause = min(self._pause * 1.5, LONGEST)

    @property
    def goes_back(self) -> bool:
        """Whether it is a roll-back of another run."""
        return self.plan.kind == "rollback"

    def targets(self, hosts: Sequence[str]) -> dict[str, str]:
        """The version that each host is to have."""
        return {name: self.plan.by_name[name].target for name in hosts}

    def earlier(self, hosts: Sequence[str]) -> dict[str, str]:
        """The version that a host goes back to where its change failed: that of a roll-back is
        tried again."""
        if self.goes_back:
            return self.targets(hosts)
        return {name: self.plan.by_name[name].before for name in hosts}
