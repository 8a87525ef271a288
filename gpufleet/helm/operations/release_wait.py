"""Waits until a release is ready.

`helm --wait` is not used: it fails if a DaemonSet has a pod on a NotReady node, and would roll back
a working release.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.helm.findings.releases import OFFERS_NOTHING, RELEASE_UNREADABLE
from gpufleet.helm.readiness import find_notes, find_silent, find_unready
from gpufleet.helm.release import Release
from gpufleet.kube.answers import WATCHED_KINDS
from gpufleet.kube.facts import ClusterFacts, HelmRelease, Workload
from gpufleet.kube.helm_releases import (
    UndecodableRelease,
    decode_release,
    newest_revisions,
    release_histories,
)
from gpufleet.kube.node_answers import parse_node
from gpufleet.kube.operated import load_operated_kinds, operated_states
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.gather import history_of
from gpufleet.kube.operations.refused import ApiError
from gpufleet.kube.parse import parse_cluster_policy, parse_workload
from gpufleet.kube.pod_reasons import Reason, event_time, find_reasons, is_about

RELEASE_POLL_SECONDS = 0.5  # between two polls
RELEASE_REPORT_SECONDS = 5.0  # between lines of progress, and between checks of nodes and pods
HOOK = "helm.sh/hook"  # annotation of a chart's hooks
EVENT_TIME = "%Y-%m-%dT%H:%M:%SZ"
_FORBIDDEN = 403

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Waited:
    """The result of a wait. `reasons`: why it is not ready, or empty. `operands`: only objects that
    the release's own operator creates are not ready."""

    reasons: tuple[str, ...]
    findings: tuple[Finding, ...]
    seconds: float
    operands: bool = False


def wait_for_release(
    api: ClusterApi, release: Release, facts: ClusterFacts, say: Say, *, changed: bool
) -> Waited:
    """Wait until a release is ready, at most its timeout. A persistent reason, such as an image
    that cannot be pulled, ends the wait when it has lasted for the release's patience.

    `facts`: from the start of the run. `changed`: the release was just changed.
    """
    ready, began = release.ready, time.monotonic()
    since = datetime.fromtimestamp(api.clock, timezone.utc).strftime(EVENT_TIME)
    hold = ready.operands.known.hold if changed and ready.operands else 0
    looked, stays_since, ready_since = -RELEASE_REPORT_SECONDS, None, None
    while True:
        spent = time.monotonic() - began
        last = spent >= ready.timeout
        due = last or spent - looked >= RELEASE_REPORT_SECONDS
        facts = read_state(api, release, facts, nodes=due)
        patient = changed and spent < min(ready.patience, ready.timeout)
        unready = find_unready(release, facts, soon=patient)
        silent, others = find_silent(release, facts)
        if not unready and (not silent or (others and not patient)):
            ready_since = spent if ready_since is None else ready_since
            if spent - ready_since >= hold:
                notes = find_notes(release, facts)
                notes += [OFFERS_NOTHING(node=name, release=release.ref) for name in silent]
                return Waited((), tuple(notes), spent)
        else:
            ready_since = None
        if due:
            looked = spent
            late = [each.workload for each in unready if each.workload]
            why = explain_not_ready(api, late or list(facts.workloads_of(release.ref)), since)
            stays = any(reason.stays for reason in why)
            stays_since = (spent if stays_since is None else stays_since) if stays else None
            lines = [*map(str, unready), *(f"node {name} advertises no GPUs" for name in silent)]
            lines += [reason.text for reason in why]
            if last or (stays_since is not None and spent - stays_since >= ready.patience):
                operands = bool(unready) and all(each.operand for each in unready)
                notes = find_notes(release, facts)
                return Waited(tuple(lines), tuple(notes), spent, operands)
            if spent >= RELEASE_REPORT_SECONDS:
                say(f"{spent:.0f} s: waiting for {'; '.join(lines) or 'it to stay ready'}")
        time.sleep(min(RELEASE_POLL_SECONDS, max(ready.timeout - spent, 0)))


def read_state(
    api: ClusterApi, release: Release, facts: ClusterFacts, *, nodes: bool
) -> ClusterFacts:
    """The facts, with the current state of everything that a wait for a release depends on."""
    found = read_release(api, release)
    if found is None:
        return replace(facts, releases=())
    spaces = sorted({release.namespace, *(ref.namespace for ref in found.workloads)})
    operated: dict[Any, str] = {}
    for ref in found.operated:
        kind = load_operated_kinds().by_kind[ref.kind]
        item = api.find(kind.path(ref))
        operated |= operated_states([item] if item else [], kind)
    policies = release.ready.operands
    return replace(
        facts,
        releases=(found,),
        operated=operated,
        nodes=tuple(map(parse_node, api.list("/api/v1/nodes"))) if nodes else facts.nodes,
        workloads=tuple(
            parse_workload(kind, item)
            for space in spaces
            for kind in WATCHED_KINDS
            for item in api.list(f"/apis/apps/v1/namespaces/{space}/{kind.lower()}s")
        ),
        cluster_policies=tuple(map(parse_cluster_policy, _policies(api, policies.known.api)))
        if policies
        else (),
    )


def read_release(api: ClusterApi, release: Release) -> HelmRelease | None:
    """The newest revision in Helm's record. Raises ClusterProblem if it is unreadable."""
    ask = history_of(release.ref)
    metadata = api.list(ask.path, ask.accept, **ask.query)
    newest = newest_revisions(metadata).get(release.ref)
    if newest is None:
        return None
    secret = api.get(f"{ask.path}/{newest}")
    try:
        return decode_release(secret).with_history(release_histories(metadata)[release.ref])
    except UndecodableRelease as error:
        found = RELEASE_UNREADABLE(release=release.ref, reason=error)
        raise ClusterProblem(found) from error


def explain_not_ready(
    api: ClusterApi, workloads: Sequence[Workload], since: str = "", *, hooks_in: str = ""
) -> list[Reason]:
    """Why the pods of workloads are not ready, and the pods of hook Jobs in a namespace. Skips
    objects that this user must not read."""
    names = {work.name for work in workloads}
    asked = {
        (work.namespace, ",".join(f"{key}={value}" for key, value in work.selector.items()))
        for work in workloads
        if work.selector
    }
    path = f"/apis/batch/v1/namespaces/{hooks_in}/jobs"
    for job in _permitted(api, path) if hooks_in else ():
        if HOOK in (job["metadata"].get("annotations") or {}):
            names.add(str(job["metadata"]["name"]))
            asked.add((hooks_in, f"job-name={job['metadata']['name']}"))
    pods = [
        pod
        for space, selector in sorted(asked)
        for pod in _permitted(api, f"/api/v1/namespaces/{space}/pods", labelSelector=selector)
    ]
    names |= {str(pod["metadata"]["name"]) for pod in pods}
    warnings = "type=Warning"
    events = [
        event
        for space in sorted({space for space, _ in asked})
        for event in _permitted(api, f"/api/v1/namespaces/{space}/events", fieldSelector=warnings)
        if is_about(event.get("involvedObject") or {}, names)
    ]
    return find_reasons(pods, sorted(events, key=event_time), since)


def _permitted(api: ClusterApi, path: str, **query: str) -> list[Any]:
    try:
        return api.list(path, **query)
    except ApiError as error:
        if error.status != _FORBIDDEN:
            raise
        return []


def _policies(api: ClusterApi, path: str) -> list[Any]:
    try:
        return api.list(path)
    except ApiError as error:
        if not error.is_missing:  # its CRD is not served yet
            raise
        return []
