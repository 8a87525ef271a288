"""Runs load tests in a cluster: creates their Jobs, waits, gathers the results, removes them."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from gpufleet.core.excerpt import beginning, ending
from gpufleet.verify.cluster import Cluster
from gpufleet.verify.findings.clusters import LOAD_LEFT
from gpufleet.verify.load_job import ENDED, LeftOut, Load, LoadRequest
from gpufleet.verify.load_judge import Series
from gpufleet.verify.load_models import PodLabels
from gpufleet.verify.subject import CheckFailed

NAMESPACE = "default"
POLL = 1.0  # seconds
WAITING = ("", "Pending")
REPORT = 15.0  # seconds between two lines of progress
TAIL = 300  # characters of a log in a message
AT_ONCE = 16  # requests
UNSURE = (408, 409, 499)  # a proxy gave up, or sent the request twice
REFUSED = frozenset(range(400, 500)) - {*UNSURE}  # statuses of an API that created nothing
Progress = Callable[[str], None]


@dataclass(slots=True)
class Run:
    """One load test. `log`: None if the kubelet does not return it; `trouble`: why it failed."""

    load: Load
    job: str
    pod: str = ""
    phase: str = ""  # of the pod, or what the Job says
    trouble: str = ""
    log: str | None = None
    log_error: str = ""
    began: datetime | None = None
    series: list[Series] = field(default_factory=list)

    @property
    def over(self) -> bool:
        return self.phase in ENDED

    def __str__(self) -> str:
        return f"{self.load.node}: {self.phase or 'no pod'}"


@dataclass(frozen=True, slots=True)
class Loads:
    """What ran, where nothing could run, and why Prometheus did not answer, or nothing."""

    runs: list[Run]
    left_out: list[LeftOut]
    silent: str

    @property
    def done(self) -> list[Run]:
        """The runs whose log shows that the program ran."""
        return [run for run in self.runs if run.phase == "Succeeded" and run.log is not None]


@contextmanager
def running(
    cluster: Cluster, jobs: Sequence[tuple[Load, Mapping[str, Any]]], report: Progress
) -> Iterator[list[Run]]:
    """Create all Jobs at once, and delete them and their pods at the end, whatever it is."""
    runs: list[Run] = []
    try:
        for load, body in jobs:
            _create(cluster, runs, load, body)
        yield runs
    except (KeyboardInterrupt, SystemExit, GeneratorExit):  # they end the checks, not only this one
        if left := _delete(cluster, runs):
            report(f"{LOAD_LEFT.code} {LOAD_LEFT.title}: {left}")
        raise
    except BaseException as error:  # also pytest's, which skip a check
        if left := _delete(cluster, runs):
            before = beginning(" ".join(str(error).split()))
            cluster.fail(LOAD_LEFT, "no Job", f"{left}; before: {before}")
        raise
    left = _delete(cluster, runs)
    cluster.expect(not left, LOAD_LEFT, "no Job", left)


def _create(cluster: Cluster, runs: list[Run], load: Load, body: Mapping[str, Any]) -> None:
    """One that may have been created, though its answer was lost, is deleted as well."""
    name = f"{body['metadata']['generateName']}{secrets.token_hex(4)}"
    named = {**body, "metadata": {**body["metadata"], "name": name}}
    runs.append(Run(load, name))
    try:
        cluster.ask(cluster.batch.create_namespaced_job, NAMESPACE, named)
    except CheckFailed as error:
        if isinstance(error.__cause__, ApiException) and error.__cause__.status in REFUSED:
            runs.pop()
        raise


def _delete(cluster: Cluster, runs: Sequence[Run]) -> str:
    """Delete the Jobs side by side; which of them stay, and why, or ""."""

    def tried(run: Run) -> str:
        call = cluster.batch.delete_namespaced_job
        return cluster.delete(call, run.job, NAMESPACE, propagation_policy="Background")

    with ThreadPoolExecutor(AT_ONCE) as pool:  # all of them are deleted, also after an interrupt
        answers = [pool.submit(tried, run) for run in runs]
    left = [(run.job, answer.result()) for run, answer in zip(runs, answers, strict=True)]
    return "; ".join(f"{job}: {beginning(why)}" for job, why in left if why)


def wait(cluster: Cluster, runs: Sequence[Run], request: LoadRequest, report: Progress) -> None:
    """Wait until every Job has finished, or has not started in time; report progress."""
    began = time.monotonic()
    late, end = began + request.start_seconds, began + request.limit
    reported, last = began - REPORT, ""
    while True:
        for run in runs:
            if not run.over:
                _look(cluster, run)
        now, text = time.monotonic(), ", ".join(map(str, runs))
        if text != last or now - reported >= REPORT:
            report(f"load test: {text} ({max(0, end - now):.0f} s left)")
            reported, last = now, text
        left = [run for run in runs if not run.over]
        if now >= end or all(now >= late and run.phase in WAITING for run in left):
            break
        time.sleep(POLL)
    for run in runs:
        if not run.over:
            run.trouble = run.trouble or f"it is still {run.phase or 'without a pod'}"
        _read_log(cluster, run)


def _look(cluster: Cluster, run: Run) -> None:
    """A Job reports itself that it exceeded its deadline, or may create no pod."""
    pods = cluster.ask(
        cluster.core.list_namespaced_pod, NAMESPACE, label_selector=f"job-name={run.job}"
    ).items
    if pods:
        pod = pods[0]
        run.pod, run.phase = pod.metadata.name, pod.status.phase
        run.began = run.began or _began(pod)
        run.trouble = "" if run.phase == "Succeeded" else _trouble(pod)
        return
    job = cluster.find(cluster.batch.read_namespaced_job, run.job, NAMESPACE)
    failed = [
        condition.message or condition.reason
        for condition in (job.status.conditions or () if job else ())
        if condition.type == "Failed" and condition.status == "True"
    ]
    if failed or not job:
        run.phase = "Failed"
        run.trouble = "; ".join([*filter(None, [run.trouble]), *failed]) or "the Job was removed"
    else:
        run.trouble = _events(cluster, run.job) or run.trouble


def _events(cluster: Cluster, job: str) -> str:
    chosen = f"involvedObject.name={job},type=Warning"
    events = cluster.ask(cluster.core.list_namespaced_event, NAMESPACE, field_selector=chosen).items
    return str(events[-1].message) if events else ""


def _began(pod: Any) -> datetime | None:
    """When its container started, as the node's clock has it."""
    for status in pod.status.container_statuses or ():
        state = status.state.running or status.state.terminated
        if state and state.started_at:
            return state.started_at  # type: ignore[no-any-return]
    return None


def _trouble(pod: Any) -> str:
    """Why a pod waits or has failed, as reported by the scheduler, kubelet or container."""
    found = [pod.status.message or ""]
    for status in pod.status.container_statuses or ():
        if status.state.waiting:
            found.append(f"{status.state.waiting.reason}: {status.state.waiting.message or ''}")
        if status.state.terminated and status.state.terminated.exit_code:
            found.append(f"exit status {status.state.terminated.exit_code}")
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status != "True":
            found.append(condition.message or "")
    return "; ".join(filter(None, found))


def _read_log(cluster: Cluster, run: Run) -> None:
    if not run.pod:
        run.log_error = "there is no pod"
        return
    try:
        run.log = str(cluster.core.read_namespaced_pod_log(run.pod, NAMESPACE))
    except ApiException as error:
        run.log_error = f"no kubelet gives the pod's log: {error.reason}"
    except HTTPError as error:
        run.log_error = f"the pod's log cannot be read: {beginning(str(error))}"


def read_series(
    cluster: Cluster, run: Run, metrics: Sequence[str], labels: Sequence[PodLabels]
) -> str:
    """Fill `series` from Prometheus for the pod's GPUs; return why there is no answer, or "".

    The time is the controller's, whose clock may differ from the node's by seconds.
    """
    if run.began is None:
        answer = cluster.prometheus("up")
        return answer if isinstance(answer, str) else ""
    span = max(1, math.ceil((datetime.now(timezone.utc) - run.began).total_seconds()))
    names = "|".join(metrics)
    for label in labels:
        matchers = f'__name__=~"{names}",{label.namespace}="{NAMESPACE}",{label.pod}="{run.pod}"'
        found = cluster.prometheus(f"{{{matchers}}}[{span}s]")
        if isinstance(found, str):
            return found
        if found:
            run.series = list(found)
            break
    return ""


def tail(text: str) -> str:
    """The last lines of a log, in one."""
    return " / ".join(line.strip() for line in ending(text, TAIL).splitlines() if line.strip())
