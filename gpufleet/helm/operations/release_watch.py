"""Wait for a release: for its workloads, and for its hooks while helm runs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

from gpufleet.core.findings import Finding
from gpufleet.helm.findings.releases import OFFERS_NOTHING, RELEASE_UNREADABLE
from gpufleet.helm.operated import OperatedWait, operated_wait
from gpufleet.helm.operations.operand_watch import OperandWatch
from gpufleet.helm.pod_reasons import (
    Reason,
    Stuck,
    claims_of,
    event_time,
    failed_jobs,
    is_ready,
    reasons,
)
from gpufleet.helm.readiness import find_served, not_offering, report_nodes, unready
from gpufleet.helm.release import OperandWait, Readiness, Release
from gpufleet.kube.facts import ClusterNode, HelmRelease, ObjectRef, Workload, WorkloadKind
from gpufleet.kube.helm_releases import (
    UndecodableRelease,
    decode_release,
    histories,
    newest_revisions,
)
from gpufleet.kube.node_answers import parse_node
from gpufleet.kube.operated import load_operated_kinds, operated_states
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.gather import history_of
from gpufleet.kube.operations.refused import ApiError
from gpufleet.kube.parse import parse_workload

RESOURCES: dict[WorkloadKind, str] = {
    "DaemonSet": "daemonsets",
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
}
HOOK = "helm.sh/hook"  # annotation of a chart's hooks
POLL = 0.5  # seconds between two polls
QUIET = 2.0  # seconds before the first line of progress
REPORT = 5.0  # seconds between two of them
NODES_AGE = 2.0  # seconds after which the nodes are read again
EVENT_TIME = "%Y-%m-%dT%H:%M:%SZ"
MAKERS = ("DaemonSet", "ReplicaSet", "StatefulSet", "Job")
_FORBIDDEN = 403

Say = Callable[[str], None]


@dataclass(slots=True)
class Watch:
    """Watches one release in the cluster."""

    api: ClusterApi
    release: Release
    say: Say
    reported: float = field(default=0.0, init=False)
    hook_reasons: list[str] = field(default_factory=list, init=False)
    _pods_said: dict[str, list[Reason]] = field(default_factory=dict, init=False)  # hook Job -> why
    _unseen: set[str] = field(default_factory=set, init=False)  # lists without permission
    _since: str = field(default="", init=False)  # when the wait began, by the server's clock
    _known: list[ClusterNode] = field(default_factory=list, init=False)
    _nodes_read: float = field(default=-math.inf, init=False)

    def until_ready(self, expected: Readiness, *, changed: bool = False) -> WaitResult:
        """Wait for every workload of the release; at most `expected.timeout` seconds.

        Ends early if a persistent cause has lasted `expected.patience` seconds. `changed`: the
        release was just changed, so its operator's status may be outdated.
        """
        began = time.monotonic()
        self._since = datetime.fromtimestamp(self.api.clock, timezone.utc).strftime(EVENT_TIME)
        operands = self._operands(expected, changed=changed)
        stuck = Stuck(expected.patience)
        while True:
            spent = time.monotonic() - began
            last = spent >= expected.timeout
            nodes, workloads = self._nodes(), self.workloads()
            patient = spent < min(expected.patience, expected.timeout)
            soon = changed and patient
            wanted = expected if soon else replace(expected, labels={})
            waiting = unready(wanted, workloads, nodes)
            objects = OperatedWait({}, ()) if waiting else self._objects(workloads)
            broken = objects.lines(soon=soon)
            ours = not waiting and not broken
            beyond = operands.look(spent, nodes) if operands and ours else OperandWait()
            served = find_served(expected, workloads, nodes) if expected.offering else []
            silent = not_offering(served) if ours and not beyond else []
            some_offer = len(silent) < len(served) and not patient
            found = report_nodes(expected, workloads, nodes)
            if ours and not beyond and (not silent or some_offer):
                found += objects.findings(self.release.ref)
                found += [*operands.findings] if operands else []
                found += [OFFERS_NOTHING(node=name, release=self.release.ref) for name in silent]
                return WaitResult([], found, spent)
            if spent > QUIET or last:
                late = [entry.workload for entry in (*waiting, *beyond.unready)]
                why = self.why(
                    workloads if silent else [*late, *objects.made(workloads)],
                    operands.validators(beyond) if operands else (),
                )
                lines = [*map(str, waiting), *broken, *beyond.lines, *_silence(silent)]
                lines += map(str, why)
                if last or stuck.after(why, spent):
                    failed = operands.not_ready(spent, lines) if operands and beyond else None
                    return WaitResult(lines, found, spent, failed)
                self._report(f"{spent:.0f} s: waiting for {'; '.join(lines)}")
            time.sleep(min(POLL, max(expected.timeout - spent, 0)))

    def _objects(self, workloads: Sequence[Workload]) -> OperatedWait:
        """What the operators of the release's objects report now."""
        found = self.current()
        objects = found.operated if found else ()
        states: dict[ObjectRef, str] = {}
        for ref in objects:
            kind = load_operated_kinds().by_kind[ref.kind]
            item = self.api.find(kind.path(ref))
            states |= operated_states([item] if item else [], kind)
        return operated_wait(objects, states, workloads)

    def _nodes(self) -> list[ClusterNode]:
        """The nodes as they are now; read again after some seconds."""
        now = time.monotonic()
        if now - self._nodes_read >= NODES_AGE:
            self._known = [parse_node(item) for item in self.api.list("/api/v1/nodes")]
            self._nodes_read = now
        return self._known

    def _operands(self, expected: Readiness, *, changed: bool) -> OperandWatch | None:
        """After a change they must stay ready for a while."""
        operands = expected.operands
        if operands is None:
            return None
        hold, patience = (operands.known.hold, expected.patience) if changed else (0, 0)
        return OperandWatch(self.api, self.release.ref, operands, hold, patience)

    def during_helm(self, spent: float) -> None:
        """Report what helm waits for: its hook Jobs. Called repeatedly while it runs.

        Raises nothing: a report must not interrupt helm.
        """
        if spent < QUIET or time.monotonic() - self.reported < REPORT:
            return
        try:
            self.hook_reasons = self._hooks()
        except Exception as error:  # noqa: BLE001 an unexpected response included
            self._report(f"{spent:.0f} s: helm is running; its hooks cannot be read: {error}")
            return
        self._report(f"{spent:.0f} s: helm waits for {'; '.join(self.hook_reasons) or 'the API'}")

    def _report(self, line: str) -> None:
        now = time.monotonic()
        if now - self.reported >= REPORT:
            self.reported = now
            self.say(line)

    def workloads(self) -> list[Workload]:
        """The current workloads of the release, in all its namespaces."""
        found = self.current()
        if found is None:
            return []
        made = [
            parse_workload(kind, item)
            for space in sorted({ref.namespace for ref in found.workloads})
            for kind, resource in RESOURCES.items()
            for item in self.api.list(f"/apis/apps/v1/namespaces/{space}/{resource}")
        ]
        return list(found.among(made))

    def current(self) -> HelmRelease | None:
        """The newest revision in Helm's record. Raises ClusterProblem if it is unreadable."""
        ref = self.release.ref
        ask = history_of(ref)
        metadata = self.api.list(ask.path, ask.accept, **ask.query)
        newest = newest_revisions(metadata).get(ref)
        if newest is None:
            return None
        secret = self.api.get(f"{ask.path}/{newest}")
        try:
            return decode_release(secret).with_history(histories(metadata)[ref])
        except UndecodableRelease as error:
            raise ClusterProblem(RELEASE_UNREADABLE(release=ref, reason=error)) from error

    def why(self, workloads: Sequence[Workload], also: Sequence[Any] = ()) -> list[Reason]:
        """Why the pods of these workloads, and the pods `also`, are not ready, from their states
        and events."""
        pods: list[Any] = [*also]
        for work in workloads:
            selector = ",".join(f"{key}={value}" for key, value in work.selector.items())
            path = f"/api/v1/namespaces/{work.namespace}/pods"
            pods += self.api.list(path, labelSelector=selector) if selector else []
        names = {work.name for work in workloads}
        events = self._events({work.namespace for work in workloads}, pods, names)
        return reasons(pods, events, self._since)

    def _hooks(self) -> list[str]:
        """Hook Jobs that have not finished, with the reasons of their pods."""
        space = self.release.namespace
        jobs = [
            job
            for job in self._explaining(f"/apis/batch/v1/namespaces/{space}/jobs")
            if HOOK in (job["metadata"].get("annotations") or {})
            and not (job.get("status") or {}).get("succeeded")
        ]
        found = failed_jobs(jobs)
        for job in jobs:
            name = job["metadata"]["name"]
            path = f"/api/v1/namespaces/{space}/pods"
            pods = self.api.list(path, labelSelector=f"job-name={name}")
            why = reasons(pods, self._events({space}, pods, {name}))
            if pods:
                self._pods_said[name] = why
            else:  # the pods of a finished Job may be deleted
                why = [*self._pods_said.get(name, ()), *why]
            found.append(f"Job {name}" + (f" ({'; '.join(map(str, why))})" if why else ""))
        return found

    def _events(self, spaces: set[str], pods: Sequence[Any], makers: set[str]) -> list[Any]:
        """Warnings about pods that are not ready and about their controllers, oldest first."""
        unready = [pod for pod in pods if not is_ready(pod)]
        waiting = {("Pod", pod["metadata"]["name"]) for pod in unready}
        waiting |= {("PersistentVolumeClaim", name) for name in claims_of(unready)}
        found = []
        for space in sorted(spaces):
            path = f"/api/v1/namespaces/{quote(space)}/events"
            events = self._explaining(path, fieldSelector="type=Warning")
            if len(waiting) > len(unready):  # that a claim finds no volume is a normal event
                events += self._explaining(path, fieldSelector="reason=FailedBinding")
            for event in events:
                about = event.get("involvedObject") or {}
                name = str(about.get("name"))
                made = about.get("kind") in MAKERS and any(
                    name == maker or name.startswith(f"{maker}-") for maker in makers
                )
                if made or (about.get("kind"), name) in waiting:
                    found.append(event)
        return sorted(found, key=event_time)

    def _explaining(self, path: str, **query: str) -> list[Any]:
        """A list that only explains a delay: if it is not permitted, empty, and reported once."""
        try:
            return self.api.list(path, **query)
        except ApiError as error:
            if error.status != _FORBIDDEN:
                raise
            if path not in self._unseen:
                self._unseen.add(path)
                self.say(f"cannot read the cause of the delay: {error.message}")
            return []


def _silence(nodes: Sequence[str]) -> list[str]:
    return [f"node {name} advertises no GPUs" for name in nodes]


@dataclass(frozen=True, slots=True)
class WaitResult:
    """The result of a wait. `reasons`: why it is not ready; empty if it is. `operands`: the finding
    if its own workloads are ready and its operands are not."""

    reasons: list[str]
    findings: list[Finding]
    seconds: float
    operands: Finding | None = None

    @property
    def ready(self) -> bool:
        return not self.reasons
