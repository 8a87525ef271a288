"""Plans of a release, from facts of real control planes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpufleet.helm.chart import ChartContent
from gpufleet.helm.chart_values import values_mark
from gpufleet.helm.obstacles import apis_of
from gpufleet.helm.plan import (
    Controller,
    plan_release,
    with_chart,
    with_objects,
)
from gpufleet.helm.release import STALE_SECONDS, ChartSource, HelmVersion, Release, ReleasePlan
from gpufleet.helm.strategy import helm_catalog
from gpufleet.kube.answers import cluster_facts
from gpufleet.kube.facts import ClusterFacts, HelmRelease, Namespace, NodePort, ReleaseRef, Revision
from gpufleet.kube.objects import POD_SECURITY_LABEL

CAPTURES = Path(__file__).parents[1] / "kube" / "captures"
NOW = 1_800_000_000
ME = Controller("me", NOW, HelmVersion(3, 22))


@pytest.fixture(scope="module", params=["1.36.3", "1.18.19"])
def facts(request: pytest.FixtureRequest) -> ClusterFacts:
    text = (CAPTURES / f"cluster-{request.param}.answers.json").read_text()
    return cluster_facts("sandbox", json.loads(text))


def release(name: str = "byhand", **more: Any) -> Release:
    wanted: dict[str, Any] = {
        "namespace": "byhand",
        "chart": "tiny",
        "version": "1.0.0",
        "source": ChartSource("archive", "/tiny.tgz"),
        "values": {"deployment": {"replicas": 2}},
        **more,
    }
    return Release(name, **wanted)


def plan(wanted: Release, facts: ClusterFacts, controller: Controller = ME) -> ReleasePlan:
    return plan_release(wanted, facts, controller, helm_catalog())


def changed(facts: ClusterFacts, name: str = "byhand", **fields: Any) -> ClusterFacts:
    """The facts with one release changed."""
    return replace(
        facts,
        releases=tuple(
            replace(found, **fields) if found.name == name else found for found in facts.releases
        ),
    )


def codes(found: ReleasePlan) -> list[str]:
    return [finding.code for finding in found.findings]


def test_as_wanted(facts: ClusterFacts) -> None:
    found = plan(release(), facts)
    assert (found.action, found.needed, found.diff, codes(found)) == ("no-op", False, (), [])


def test_not_there(facts: ClusterFacts) -> None:
    found = plan(release("new", namespace="new"), facts)
    assert (found.action, found.before, found.rollback_to) == ("install", None, None)
    assert found.changes


def test_only_its_history_is_there(facts: ClusterFacts) -> None:
    assert plan(release(), changed(facts, status="uninstalled")).action == "install"


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"version": "1.0.1"}, "chart 1.0.0 -> 1.0.1"),
        ({"values": {"deployment": {"replicas": 2}, "settings": {}}}, "values differ"),
        ({"version": "2.0.0", "values": {"deployment": {"replicas": 3}}},
         "chart 1.0.0 -> 2.0.0; values differ"),
    ],
)  # fmt: skip
def test_not_as_wanted(facts: ClusterFacts, wanted: dict[str, Any], reason: str) -> None:
    found = plan(release(adopt=True, **wanted), facts)
    assert (found.action, found.reason) == ("upgrade", reason)
    before, after = found.diff[:2] if found.diff else ("", "")
    assert before.startswith("--- tiny 1.0.0, revision ") is ("values" in wanted)
    assert after.startswith(f"+++ tiny {wanted.get('version', '1.0.0')}, wanted") is (
        "values" in wanted
    )


def test_a_leading_v_is_no_difference(facts: ClusterFacts) -> None:
    assert plan(release(version="v1.0.0"), facts).action == "no-op"


def test_a_workload_is_gone(facts: ClusterFacts) -> None:
    left = tuple(work for work in facts.workloads if work.name != "byhand")
    found = plan(release(adopt=True), replace(facts, workloads=left))
    assert (found.action, found.reason) == ("repair", "Deployment byhand/byhand is missing")


def test_a_workload_with_only_the_releases_annotations_is_not_waited_for(
    facts: ClusterFacts,
) -> None:
    (ours,) = (work for work in facts.workloads if work.name == "byhand")
    forged = [
        replace(ours, name="forged", ready=0),
        replace(ours, namespace="tenant", ready=0),
    ]
    found = plan(release(), replace(facts, workloads=(*facts.workloads, *forged)))
    assert found.action == "no-op"


def test_an_unreadable_record_blocks_only_its_release(facts: ClusterFacts) -> None:
    bad = replace(facts, unreadable={ReleaseRef("byhand", "byhand"): "Secret s is garbled"})
    found = plan(release(), bad)
    assert (found.action, codes(found)) == ("blocked", ["GF820"])
    assert "Secret s is garbled" in found.findings[0].message
    assert plan(release("new", namespace="new"), bad).action == "install"


def test_a_workload_is_not_ready(facts: ClusterFacts) -> None:
    works = tuple(replace(w, ready=1) if w.name == "byhand" else w for w in facts.workloads)
    found = plan(release(), replace(facts, workloads=works))
    assert (found.action, found.changes, found.needed) == ("wait", False, True)
    assert found.reason == "Deployment byhand: 1 of 2 pods are ready"


def test_failed_goes_back_to_what_was_good(facts: ClusterFacts) -> None:
    history = (Revision(1, "superseded"), Revision(2, "deployed"), Revision(3, "failed"))
    failed = changed(facts, status="failed", revision=3, history=history)
    found = plan(release(adopt=True), failed)
    assert (found.action, found.rollback_to) == ("repair-failed", 2)


def test_failed_at_its_first_installation(facts: ClusterFacts) -> None:
    found = plan(release("broken", values={}, adopt=True), facts)
    assert (found.action, found.rollback_to) == ("repair-failed", None)


BUSY = replace(ME, alone=False)
PENDING = [
    # made by gpufleet, age in seconds, the controller that asks, action
    (True, 1, ME, "repair-pending"),
    (True, 1, replace(ME, id="another machine"), "repair-pending"),
    (True, 1, BUSY, "blocked"),
    (True, STALE_SECONDS, BUSY, "repair-pending"),
    (False, 1, ME, "blocked"),
    (False, STALE_SECONDS + 1, ME, "repair-pending"),
    (False, STALE_SECONDS + 1, replace(ME, now=0), "blocked"),  # the server's time is unknown
    (False, NOW, ME, "blocked"),  # so is the start of the operation
]


@pytest.mark.parametrize("status", ["pending-install", "uninstalling"])
@pytest.mark.parametrize(("ours", "age", "controller", "action"), PENDING)
def test_pending(
    facts: ClusterFacts, ours: bool, age: int, controller: Controller, action: str, status: str
) -> None:
    labels = {"gpufleet": "me"} if ours else {}
    history = (Revision(1, status),)
    pending = changed(
        facts, "stuck", labels=labels, created=NOW - age, status=status, history=history
    )
    found = plan(release("stuck", values={}, adopt=True), pending, controller)
    assert found.action == action
    assert codes(found) == (["GF832"] if action == "blocked" else [])
    assert found.rollback_to == (1 if action == "repair-pending" else None)


def test_a_pending_upgrade_goes_back_to_what_was_good(facts: ClusterFacts) -> None:
    history = (Revision(4, "superseded"), Revision(5, "deployed"), Revision(6, "pending-upgrade"))
    pending = changed(facts, status="pending-upgrade", revision=6, history=history, created=1)
    assert plan(release(adopt=True), pending).rollback_to == 5


def test_another_chart_has_the_name(facts: ClusterFacts) -> None:
    found = plan(release(chart="other"), facts)
    assert (found.action, codes(found)) == ("blocked", ["GF830"])


def test_values_of_another_user_are_not_lost(facts: ClusterFacts) -> None:
    found = plan(release(values={}), facts)
    assert (found.action, codes(found)) == ("blocked", ["GF831"])
    assert "deployment" in found.blockers[0].message
    bare = changed(facts, values={})
    found = plan(release(values={"settings": {}}, left_by="monitoring_exporter = False"), bare)
    assert (found.action, codes(found)) == ("blocked", ["GF831"]), "no value would be lost"
    assert found.blockers[0].remedy.startswith("To use it as it is, set monitoring_exporter = ")
    ours = changed(facts, labels={"gpufleet": "me"})
    assert plan(release(values={}), ours).action == "upgrade"
    assert plan(release(values={}, adopt=True), facts).action == "upgrade"


def test_manually_set_values_are_named_before_they_are_replaced(
    facts: ClusterFacts,
) -> None:
    """helm upgrade inherits the labels of the previous revision."""
    (byhand,) = [found for found in facts.releases if found.name == "byhand"]
    ours = {"gpufleet": "me", "gpufleet-values": values_mark(byhand.values)}
    wanted = release(values={"deployment": {"replicas": 3}})
    assert codes(plan(wanted, changed(facts, labels=ours))) == []
    values = {**byhand.values, "tolerations": [{"key": "mine"}]}
    edited = plan(wanted, changed(facts, labels=ours, values=values))
    assert (edited.action, codes(edited)) == ("upgrade", ["GF868"])
    assert "of its values: deployment.replicas, tolerations." in edited.findings[0].message
    kept = release(values={"deployment": {"replicas": 3}, "tolerations": [{"key": "mine"}]})
    assert codes(plan(kept, changed(facts, labels=ours, values=values))) == ["GF868"]
    before = changed(facts, labels={"gpufleet": "me"}, values=values)
    assert codes(plan(wanted, before)) == [], "created before hashes were recorded"


def test_a_mark_shows_nothing_of_a_secret() -> None:
    assert values_mark({"a": 1, "password": "one"}) == values_mark({"a": 1, "password": "two"})
    assert values_mark({"a": 1}) != values_mark({"a": 2})


def test_a_newer_chart_stays(facts: ClusterFacts) -> None:
    newer = changed(facts, chart_version="1.10.0")
    found = plan(release(version="1.9.0", values={}), newer)
    assert (found.action, codes(found)) == ("no-op", ["GF859"])
    down = plan(release(version="1.9.0", downgrade=True, adopt=True), newer)
    assert down.action == "upgrade"


@pytest.mark.parametrize(
    ("labels", "fits"),
    [
        ({POD_SECURITY_LABEL: "restricted"}, False),
        ({POD_SECURITY_LABEL: "baseline"}, False),
        ({POD_SECURITY_LABEL: "privileged"}, True),
        ({"pod-security.kubernetes.io/warn": "restricted"}, True),
    ],
)
def test_pod_security(facts: ClusterFacts, labels: dict[str, str], fits: bool) -> None:
    strict = {"strict": Namespace("strict", labels=labels)}
    found = plan(release("new", namespace="strict"), replace(facts, namespaces=strict))
    assert (found.action, codes(found)) == (("install", []) if fits else ("blocked", ["GF835"]))


def test_crds_that_fell_behind(facts: ClusterFacts) -> None:
    name = "servicemonitors.monitoring.coreos.com"
    note = "operator.prometheus.io/version"
    crds = {name: replace(facts.crds[name], annotations={note: "0.80.0"})}
    behind = replace(changed(facts, app_version="v0.93.1"), crds=crds)
    wanted = release(crd_version=note, adopt=True)
    assert plan(wanted, behind).action == "upgrade"
    assert name in plan(wanted, behind).reason
    without = replace(behind, crds={name: replace(crds[name], annotations={})})
    assert plan(wanted, without).action == "no-op"
    theirs = replace(crds[name], release=ReleaseRef("other", "operator"))
    assert plan(wanted, replace(behind, crds={name: theirs})).action == "no-op"


CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {"group": "example.com", "names": {"kind": "Thing"},
             "versions": [{"name": "v1", "served": True, "schema": {}}]},
}  # fmt: skip
CHART = ChartContent("tiny", "1.0.0", "v1", {"deployment": {"replicas": 1}}, (CRD,))


def test_the_chart_adds_crds_and_unknown_values(facts: ClusterFacts) -> None:
    wanted = release("new", namespace="new", values={"deploymnt": {}})
    found = with_chart(plan(wanted, facts), CHART, {}, facts, helm_catalog())
    old = facts.server.minor <= 18
    assert [(step.action, step.method) for step in found.crds] == [
        ("create", "replace" if old else "apply")
    ]
    assert codes(found) == ["GF836"]
    assert "Did you mean deployment?" in found.findings[0].remedy


def test_objects_that_cannot_be_created_are_reported_beforehand(facts: ClusterFacts) -> None:
    started = plan(release("new", namespace="new"), facts)
    gone = {"apiVersion": "policy/v0", "kind": "PodSecurityPolicy"}
    assert codes(with_objects(started, [gone], facts)) == ["GF843"]
    thing = {"apiVersion": "example.com/v1", "kind": "Thing"}
    assert codes(with_objects(started, [thing], facts)) == ["GF843"]
    assert codes(with_objects(started, [thing], facts, list(apis_of(CRD)))) == []
    assert codes(with_objects(started, [thing, CRD], facts)) == []
    taken = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"nodePort": 30090}]}}
    found = with_objects(started, [taken], facts)
    assert (found.action, codes(found)) == ("blocked", ["GF834"])


def test_a_release_may_keep_its_own_port(facts: ClusterFacts) -> None:
    port = NodePort("byhand", "byhand", 30500, release=ReleaseRef("byhand", "byhand"))
    held = replace(facts, node_ports=(port,))
    service = {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"nodePort": 30500}]}}
    started = plan(release(version="1.1.0", adopt=True), held)
    assert codes(with_objects(started, [service], held)) == []


@pytest.mark.parametrize(
    ("helm", "method", "flags"),
    [
        (HelmVersion(3, 22), "", {"1.36": (), "1.18": ()}),
        (HelmVersion(4, 2), "", {"1.36": (), "1.18": ("--server-side=false",)}),
        (HelmVersion(4, 2), "ssa",
         {"1.36": ("--force-conflicts",), "1.18": ("--server-side=false",)}),
    ],
)  # fmt: skip
def test_how_helm_is_called(
    facts: ClusterFacts, helm: HelmVersion, method: str, flags: dict[str, tuple[str, ...]]
) -> None:
    wanted = release(version="1.1.0", adopt=True, force_conflicts=True)
    found = plan(wanted, changed(facts, apply_method=method), Controller("me", NOW, helm))
    assert found.strategy.flags == flags[str(facts.server)]
    watch = found.strategy.environment.get("KUBE_FEATURE_WatchListClient")
    assert watch == ("false" if str(facts.server) == "1.18" else None)


def test_last_good_of_a_release() -> None:
    empty = HelmRelease("r", "n", 1, "failed", "c", "1", "", {})
    assert empty.last_good is None
    assert replace(empty, history=(Revision(1, "superseded"),)).last_good == 1
