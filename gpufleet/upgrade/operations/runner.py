"""Carries out a run: decides, acts, writes down, until nothing is left to do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import one_line
from gpufleet.upgrade import findings
from gpufleet.upgrade.decide import Act, Do, End, Wait, decide
from gpufleet.upgrade.look import FOLDER
from gpufleet.upgrade.models import Plan, names
from gpufleet.upgrade.operations.children import Children, Result
from gpufleet.upgrade.operations.cluster import ClusterNodes, Round
from gpufleet.upgrade.operations.hooks import Hook, run_hook
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.pods import Policy
from gpufleet.upgrade.progress import Entry, Progress
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.upgrade.states import Event, State

POLL, LONGEST = 3.0, 30.0  # seconds between two looks at hosts that are waited for
IDLE = 2.0  # seconds between two looks at requests
THREADS = 16
NO_CLUSTERS: Mapping[str, ClusterNodes] = {}


Value = TypeVar("Value")


def policy_of(settings: UpgradeSettings) -> Policy:
    """What is done with the pods of a node."""
    return Policy(
        every=settings.drain == "all",
        jobs=settings.jobs,
        empty_dir=settings.evict_empty_dir,
        unmanaged=settings.evict_unmanaged,
    )


def text_of(error: Stopped) -> str:
    return "; ".join(f"{each.code} {each.message}" for each in error.findings)


def kept(seen: Result, version: str) -> Result:
    """Whether a host that was looked at has the packages of a version."""
    if not seen.ok or seen.plan.get("kept") == version:
        return seen
    lacking = findings.NOTHING_KEPT(folder=FOLDER, version=version)
    return Result(False, f"{lacking.code} {lacking.message}")


class Runner:
    """One process that carries out a run."""

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
        self.progress: Progress = store.progress()
        self.hooks: dict[str, Hook] = {}
        self.pause = POLL
        self.shown: dict[str, str] = {}  # host -> what it waits for, as last said
        self.stopping = threading.Event()
        for cluster in clusters.values():
            cluster.stopping = self.stopping

    def run(self) -> End:
        """Until it ends, is paused or interrupted. Raises Stopped where it cannot go on."""
        waited = ""
        while True:
            decision = decide(self.progress, time.time(), self.store.request)
            if isinstance(decision, End):
                self.write(decision.event, reason=decision.reason)
                return decision
            if self.stopping.is_set():
                return End("interrupted")
            if isinstance(decision, Wait):
                if decision.reason != waited:
                    waited = decision.reason
                    until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(decision.until))
                    self.say(f"waiting for the {waited} until {until}")
                self.stopping.wait(min(max(decision.until - time.time(), 0), IDLE))
                continue
            waited = ""
            self.act(decision)

    def stop(self) -> None:
        """End soon: what is under way on hosts is ended in order, and is continued by a resume."""
        self.stopping.set()
        self.children.end()

    def write(self, event: str, host: str = "", reason: str = "") -> None:
        """Write down an event, then count it. The reason may quote hosts and clusters."""
        reason = one_line(reason)
        entry = Entry(time.time(), event, host, reason)
        self.store.append(entry)
        self.progress.add(entry)
        shown = f": {reason}" if reason else ""
        self.say(f"{host or 'run'}: {event}{shown}")

    def act(self, act: Act) -> None:
        steps: dict[Do, Callable[[Sequence[str]], None]] = {
            Do.PREPARE: self.prepare,
            Do.DRAIN: self.drain,
            Do.LEAVE: self.leave,
            Do.CHANGE: self.change,
            Do.RESTORE: self.restore,
            Do.RETURN: self.give_back,
        }
        steps[act.do](act.hosts)

    def prepare(self, hosts: Sequence[str]) -> None:
        """A roll-back needs the packages that the hosts have kept; they are checked when used."""
        back = self.plan.kind == "rollback"
        targets = {name: self.target(name) for name in hosts}
        results = self.by_version("look" if back else "prepare", targets)
        if self.stopping.is_set():  # steps that were ended say nothing about their hosts
            return
        if back:
            results = {name: kept(result, targets[name]) for name, result in results.items()}
        for name in hosts:
            event = Event.PREPARED if results[name].ok else Event.REFUSED
            self.write(event.value, name, results[name].reason)

    def drain(self, hosts: Sequence[str]) -> None:
        """One round: hosts are taken out of service, those that are idle are drained."""
        for name in hosts:
            if self.progress.states[name] is State.READY:
                self.write(Event.DRAIN_BEGAN.value, name)
        out = [name for name in hosts if self.is_out(name)]
        ready = self.evicted(out)
        seen = self.by_version("look", {n: self.target(n) for n in ready})
        if self.stopping.is_set():
            return
        for name in ready:
            self.judge(name, seen[name])
        if all(self.progress.states[name] is State.DRAINING for name in hosts):
            self.stopping.wait(self.pause)
            self.pause = min(self.pause * 1.5, LONGEST)
        else:
            self.pause = POLL

    def is_out(self, name: str) -> bool:
        """Whether the command that takes a host out of service has succeeded."""
        settings = self.settings[name]
        if settings.drain_command is None:
            return True
        if name not in self.hooks:
            limit = settings.wait + settings.command_timeout
            try:
                self.hooks[name] = Hook(settings.drain_command, name, limit)
            except OSError as error:
                self.write(Event.NOT_DRAINED.value, name, f"upgrade_drain_command: {error}")
                return False
        result = self.hooks[name].poll()
        if self.stopping.is_set():  # Ctrl-C ends the command too
            return False
        if result:
            del self.hooks[name]
            self.write(Event.NOT_DRAINED.value, name, f"upgrade_drain_command: {result}")
        return result == ""

    def evicted(self, hosts: Sequence[str]) -> list[str]:
        """Those of the hosts that no pod uses any more, or that are no nodes."""

        def one(name: str) -> Round:
            cluster = self.clusters.get(name)
            if cluster is None:
                return Round(drained=True)
            try:
                return cluster.drain(name, policy_of(self.settings[name]))
            except Stopped as error:
                return Round(reasons=[text_of(error)])

        ready = []
        for name, found in self.each(one, hosts).items():
            if found.given_up:
                self.write(Event.NOT_DRAINED.value, name, found.given_up)
            elif found.drained:
                ready.append(name)
            else:
                self.waited(name, names(found.reasons, 3) or "pods are ending")
        return ready

    def judge(self, name: str, seen: Result) -> None:
        """Whether a host is idle, or has been waited for long enough."""
        work = [str(each) for each in seen.plan.get("work") or ()]
        if seen.ok and not work:
            self.write(Event.DRAINED.value, name)
        else:
            self.waited(name, f"GPU work: {names(work)}" if seen.ok else seen.reason)

    def waited(self, name: str, reason: str) -> None:
        """Give a host up that was waited for long enough; the reason is said once."""
        if time.time() - self.progress.since[name] >= self.settings[name].wait:
            self.write(Event.NOT_DRAINED.value, name, reason)
        elif self.shown.get(name) != reason:
            self.shown[name] = reason
            self.say(f"{name}: waits: {one_line(reason)}")

    def leave(self, hosts: Sequence[str]) -> None:
        for name in hosts:
            if hook := self.hooks.pop(name, None):
                hook.end()
            self.write(Event.NOT_DRAINED.value, name, "abort was requested")

    def change(self, hosts: Sequence[str]) -> None:
        for name in hosts:
            if self.progress.states[name] is State.DRAINED:
                self.write(Event.CHANGE_BEGAN.value, name)
        targets = {name: self.target(name) for name in hosts}
        back = self.plan.kind == "rollback"
        results = self.cleared(
            targets, self.back_to if back else lambda some: self.by_version("change", some)
        )
        if self.stopping.is_set():
            return
        results = self.checked(results)
        if self.stopping.is_set():  # Ctrl-C ends the commands too
            return
        for name, result in results.items():
            event = Event.CHANGED if result.ok else Event.CHANGE_FAILED
            self.write(event.value, name, result.reason)

    def restore(self, hosts: Sequence[str]) -> None:
        for name in hosts:
            if self.progress.states[name] is State.FAILED:
                self.write(Event.RESTORE_BEGAN.value, name)
        back = self.plan.kind == "rollback"  # its second attempt
        versions = {name: self.target(name) if back else self.before(name) for name in hosts}
        results = self.cleared(versions, self.back_to)
        if self.stopping.is_set():
            return
        for name in hosts:
            result = results[name]
            if not result.ok and (cluster := self.clusters.get(name)):
                cluster.leave_behind(name, result.reason)
            event = Event.RESTORED if result.ok else Event.RESTORE_FAILED
            self.write(event.value, name, result.reason)

    def give_back(self, hosts: Sequence[str]) -> None:
        """Return hosts to service. Raises Stopped where that fails: a resume tries again."""
        said = self.each(self.returned, hosts)
        for name, problem in said.items():
            if not problem:
                self.write(Event.RETURNED.value, name)
        for name, problem in said.items():
            if problem:
                raise Stopped(
                    findings.COMMAND_FAILED(
                        key="upgrade_ready_command", host=name, status="an error", output=problem
                    )
                )

    def returned(self, name: str) -> str:
        settings = self.settings[name]
        if cluster := self.clusters.get(name):
            cluster.give_back(name)
        if settings.ready_command is None:
            return ""
        return run_hook(settings.ready_command, name, settings.command_timeout)

    def checked(self, results: Mapping[str, Result]) -> dict[str, Result]:
        """The results with those of the command that checks a changed host."""

        def check(name: str) -> Result:
            settings, result = self.settings[name], results[name]
            if not result.ok or settings.check_command is None:
                return result
            said = run_hook(settings.check_command, name, settings.command_timeout)
            return Result(False, f"upgrade_check_command: {said}") if said else result

        return self.each(check, list(results))

    def cleared(
        self,
        versions: Mapping[str, str],
        change: Callable[[Mapping[str, str]], dict[str, Result]],
    ) -> dict[str, Result]:
        """Change hosts without their clients of the GPUs; those of nodes then come back and have a
        GPU pod run."""

        def clear(name: str) -> str:
            cluster = self.clusters.get(name)
            return cluster.clear(name, policy_of(self.settings[name])) if cluster else ""

        def check(name: str) -> str:
            cluster, settings = self.clusters.get(name), self.settings[name]
            seconds = settings.node_timeout
            return cluster.check(name, settings.gpu_image, seconds) if cluster else ""

        problems = self.each(clear, list(versions))
        results = {name: Result(False, problem) for name, problem in problems.items() if problem}
        free = {name: versions[name] for name in versions if name not in results}
        results |= change(free) if free else {}
        if self.stopping.is_set():
            return results
        good = [name for name, result in results.items() if result.ok]
        wrong = {name: problem for name, problem in self.each(check, good).items() if problem}
        return results | {name: Result(False, problem) for name, problem in wrong.items()}

    def each(self, call: Callable[[str], Value], hosts: Sequence[str]) -> dict[str, Value]:
        """Call a function for each host, side by side."""
        with ThreadPoolExecutor(THREADS) as pool:
            return dict(zip(hosts, pool.map(call, hosts), strict=True))

    def back_to(self, versions: Mapping[str, str]) -> dict[str, Result]:
        """Install earlier versions from the hosts' own folders, then load and check them."""
        first = self.by_version("restore", versions)
        good = {name: version for name, version in versions.items() if first[name].ok}
        return {**first, **self.by_version("change", good)}

    def by_version(self, step: str, versions: Mapping[str, str]) -> dict[str, Result]:
        """One process for each version of the driver, side by side."""
        hosts: dict[str, list[str]] = {}
        for name, version in versions.items():
            hosts.setdefault(version, []).append(name)
        if not hosts:
            return {}

        def one(version: str) -> dict[str, Result]:
            return self.children.step(step, hosts[version], version)

        with ThreadPoolExecutor(len(hosts)) as pool:
            found = list(pool.map(one, hosts))
        return {name: result for part in found for name, result in part.items()}

    def target(self, name: str) -> str:
        return self.plan.by_name[name].target

    def before(self, name: str) -> str:
        return self.plan.by_name[name].before
