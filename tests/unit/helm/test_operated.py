"""Objects for which operators create workloads, and pods that the API server refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.helm.operations.pod_trial import explain_refusal, trial_pods
from gpufleet.helm.readiness import find_notes, find_unready
from gpufleet.helm.release import ChartSource, Release, ReleasePlan
from gpufleet.kube.facts import (
    ClusterFacts,
    HelmRelease,
    ObjectRef,
    Placement,
    ReleaseRef,
    ServerVersion,
    Workload,
)
from gpufleet.kube.operated import load_operated_kinds, operated_states
from gpufleet.kube.pod_reasons import find_reasons

pytestmark = pytest.mark.claim(
    "`apply` waits for the Prometheus and Alertmanager of its release.",
    level=1,
)

REF = ObjectRef("Prometheus", "monitoring", "main")
KIND = load_operated_kinds().by_kind["Prometheus"]
STACK = ReleaseRef("monitoring", "stack")
# of the operator v0.93 about a claim of a storage class that does not exist
PENDING = "shard 0: pod prometheus-main-0: 0/3 nodes are available: unbound PersistentVolumeClaims"


def prometheus(*conditions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {"namespace": "monitoring", "name": "main", "generation": 2}
    return {"metadata": metadata, "spec": spec, "status": {"conditions": list(conditions)}}


def condition(kind: str, status: str, message: str = "", seen: int = 2) -> dict[str, Any]:
    return {"type": kind, "status": status, "message": message, "observedGeneration": seen}


@pytest.mark.parametrize(
    ("item", "state"),
    [
        (prometheus(condition("Reconciled", "True"), condition("Available", "True")), ""),
        (prometheus(condition("Reconciled", "True"), condition("Available", "False", PENDING)),
         f"Available is False ({PENDING})"),
        (prometheus(condition("Available", "Degraded", "x")), "Available is Degraded (x)"),
        (prometheus(condition("Reconciled", "False", "bad config"), condition("Available", "True")),
         "Reconciled is False (bad config)"),
        (prometheus(condition("Available", "True", seen=1)),
         "its operator has not observed the update yet"),
        (prometheus(condition("Available", "False"), paused=True), ""),
        (prometheus(), None),
        ({"metadata": {"namespace": "monitoring", "name": "main"}}, None),
    ],
)  # fmt: skip
def test_what_an_operator_reports(item: dict[str, Any], state: str | None) -> None:
    """prometheus-community/helm-charts#3805: the claim's storage class does not exist."""
    assert operated_states([item], KIND).get(REF) == state


def stateful(ready: int, maker: str = "main") -> Workload:
    return Workload(
        kind="StatefulSet", namespace="monitoring", name=f"prometheus-{maker}", images=(),
        host_ports=(), host_network=False, wanted=1, ready=ready, updated=1, old=0, settled=True,
        selector={}, placement=Placement(), owner=ObjectRef("Prometheus", "", maker),
    )  # fmt: skip


def test_an_object_without_a_report_is_judged_by_its_workload() -> None:
    """prometheus/prometheus#19254: no status, no StatefulSet, no event; older operators: no
    condition."""
    release = HelmRelease("stack", "monitoring", 1, "deployed", "c", "1", "", {}, operated=(REF,))
    wanted = Release("stack", "monitoring", "c", "1", ChartSource("repository", ""))
    silent = ClusterFacts("test", ServerVersion(1, 36), releases=(release,))
    assert [str(part) for part in find_unready(wanted, silent, soon=True)] == [
        "Prometheus main: no operator has reported on it yet"
    ]
    assert find_unready(wanted, silent) == []
    assert [finding.code for finding in find_notes(wanted, silent)] == ["GF818"]
    works = replace(silent, workloads=(stateful(1),))
    assert (find_unready(wanted, works, soon=True), find_notes(wanted, works)) == ([], [])
    broken = replace(works, operated={REF: "Available is False (x)"})
    (found,) = find_unready(wanted, broken)
    assert (str(found), found.workload) == ("Prometheus main: Available is False (x)", stateful(1))


def test_what_an_operator_makes_of_a_release_belongs_to_it() -> None:
    release = HelmRelease("stack", "monitoring", 1, "deployed", "c", "1", "", {}, operated=(REF,))
    theirs = replace(stateful(1), namespace="elsewhere")
    assert release.among([stateful(1), stateful(1, "other"), theirs]) == (stateful(1),)


def event(kind: str, reason: str, message: str, at: str = "2026-01-01T00:00:09Z") -> dict[str, Any]:
    about = {"kind": kind, "name": "x"}
    what = {"reason": reason, "message": message, "type": "Warning"}
    return {"involvedObject": about, "lastTimestamp": at, **what}


SCOPES = "insufficient quota to match these scopes: [{PriorityClass In [system-node-critical]}]"
SECURITY = 'pods "x-7d" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes'


@pytest.mark.parametrize(
    ("message", "stays"),
    [
        (f"Error creating: {SCOPES}", True),
        (f"Error creating: {SECURITY}", True),
        ("exceeded quota: q, requested: pods=1", True),
        ("failed calling webhook", False),
    ],
)
def test_which_failures_to_create_a_pod_end_a_wait(message: str, stays: bool) -> None:
    """NVIDIA/aicr#915: a release waited ten minutes for a quota that can never be met."""
    failed = event("ReplicaSet", "FailedCreate", message)
    assert [why.stays for why in find_reasons([], [failed], "2026-01-01T00:00:05Z")] == [stays]
    (over,) = find_reasons([], [failed], "2026-01-01T00:00:10Z")  # of an earlier run
    assert not over.stays


def test_pods_are_tried_as_their_controller_would_create_them() -> None:
    spec = {
        "serviceAccountName": "own", "runtimeClassName": "nvidia", "priorityClassName": "high",
        "hostNetwork": True,
    }  # fmt: skip
    template = {"metadata": {"labels": {"app": "x"}}, "spec": spec}
    rendered = [
        {"kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {"template": template}},
        {"kind": "Service", "metadata": {"name": "s"}, "spec": {}},
    ]
    release = Release("r", "space", "r", "1.0.0", ChartSource("repository", ""))
    ((ref, pod),) = trial_pods(ReleasePlan(release, "install", "", None), rendered)
    assert ref == ObjectRef("DaemonSet", "space", "d")
    assert pod["metadata"]["labels"] == {"app": "x"}
    assert pod["spec"] == {
        "priorityClassName": "high",
        "hostNetwork": True,
        "serviceAccountName": "default",  # the release's may not exist yet
        "automountServiceAccountToken": False,
    }


@pytest.mark.parametrize(
    ("message", "code", "said"),
    [
        (SECURITY, "GF835", "enforces pod security level baseline"),
        (SECURITY.replace("baseline", "restricted"), "GF835", "level restricted"),
        (SCOPES, "GF819", "insufficient quota"),
        ('pods "x" is forbidden: no PriorityClass with name high was found', None, ""),
    ],
)
def test_why_pods_are_refused(message: str, code: str | None, said: str) -> None:
    found = explain_refusal(message, "space", STACK)
    assert (found.code if found else None) == code
    assert said in (found.message if found else "")
