"""What is removed from a cluster and what stays, by the cluster's facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.gpu_stack.remains import ChartCrd, Owned, PodUse, Remains
from gpufleet.gpu_stack.removal import ORDER, StackRemoval, leaving_of, plan_stack_removal
from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.helm.builder import EXPORTER, NFD, OPERATOR, PLUGIN, STACK
from gpufleet.helm.release import ADOPTED_LABEL, OWNER_LABEL
from gpufleet.kube.facts import ClusterFacts, HelmRelease, ObjectRef, ReleaseRef
from tests.unit.gpu_stack.gpu_clusters import CATALOG, FACTS, work

OURS = {OWNER_LABEL: "1234"}
SPACES = {PLUGIN: "kube-system", NFD: "node-feature-discovery", OPERATOR: "gpu-operator"}
CRD = "prometheusrules.monitoring.coreos.com"
RULE = ObjectRef("PrometheusRule", "team", "theirs")
NOTHING = Remains()
POD = PodUse(ObjectRef("Pod", "team", "train-0"))


def release(name: str, **more: Any) -> HelmRelease:
    space = SPACES.get(name, "monitoring")
    found = HelmRelease(name, space, 1, "deployed", name, "1.2.3", "1", {}, labels=OURS)
    return replace(found, **more)


def cluster(*releases: HelmRelease, **more: Any) -> ClusterFacts:
    return replace(FACTS, releases=releases, **more)


def removal(facts: ClusterFacts, remains: Remains = NOTHING, **data: Any) -> StackRemoval:
    settings, problems = load_cluster_settings(data)
    assert settings, problems
    return plan_stack_removal(settings, facts, remains, CATALOG)


def codes(plan: StackRemoval) -> list[str]:
    return [finding.code for finding in plan.findings]


def message(plan: StackRemoval, code: str) -> str:
    (found,) = (finding for finding in plan.findings if finding.code == code)
    return found.message


def made(kind: str, name: str, namespace: str = "") -> Owned:
    return Owned(ObjectRef(kind, namespace, name), f"/{kind}/{name}")


def crd(name: str = CRD, **more: Any) -> ChartCrd:
    return ChartCrd(**{"name": name, "path": f"/crds/{name}", "ours": True, **more})


def test_releases_go_in_reverse_order_of_their_installation() -> None:
    plan = removal(cluster(*(release(name) for name in reversed(ORDER))))
    assert [found.name for found in plan.releases] == list(ORDER)
    assert ORDER[-1] == STACK  # its CRDs are those of the others' objects
    assert not plan.blockers
    assert plan.movements[STACK] == {"before": "1.2.3", "after": None}
    assert plan.steps()[0] == (
        "uninstall release monitoring/node-problem-detector (node-problem-detector 1.2.3)"
    )


def test_nothing_is_planned_where_nothing_is() -> None:
    plan = removal(FACTS)
    assert (plan.steps(), plan.findings, plan.movements) == ([], (), {})


@pytest.mark.parametrize("status", ["failed", "pending-install", "uninstalling", "uninstalled"])
def test_an_unfinished_installation_or_removal_is_continued(status: str) -> None:
    plan = removal(cluster(release(STACK, status=status)))
    assert [found.name for found in plan.releases] == [STACK]


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ({}, "does not have the label"),
        ({**OURS, ADOPTED_LABEL: "true"}, "was there before gpufleet"),
    ],
)
def test_a_release_of_another_user_stays_and_is_named(labels: dict[str, str], why: str) -> None:
    plan = removal(cluster(release(STACK, labels=labels), release(EXPORTER)))
    assert [found.name for found in plan.releases] == [EXPORTER]
    assert why in message(plan, "GF971")
    assert "monitoring/kube-prometheus-stack" in message(plan, "GF971")
    assert plan.movements[STACK] == {"before": "1.2.3", "after": "1.2.3"}


@pytest.mark.parametrize(
    ("labels", "status", "goes"),
    [
        (OURS, "deployed", True),
        (None, "", True),  # this run, or an earlier one, removed it
        ({}, "uninstalled", True),
        ({}, "deployed", False),
        ({**OURS, ADOPTED_LABEL: "true"}, "deployed", False),
    ],
)
def test_objects_of_a_release_that_stays_do_not_go(
    labels: dict[str, str] | None, status: str, goes: bool
) -> None:
    there = [] if labels is None else [release(OPERATOR, labels=labels, status=status)]
    settings, _ = load_cluster_settings({})
    assert settings
    found = leaving_of(settings, cluster(*there), CATALOG)
    assert (ReleaseRef("gpu-operator", OPERATOR) in found.releases) is goes
    assert found.owners["ClusterPolicy.nvidia.com"] == {""}
    assert found.owners["Pod"] == {"nfd.k8s-sigs.io", "nvidia.com"}


def test_what_another_user_uninstalled_is_not_named() -> None:
    assert codes(removal(cluster(release(STACK, labels={}, status="uninstalled")))) == []


def test_a_release_in_another_namespace_is_named() -> None:
    plan = removal(FACTS, Remains(elsewhere=(ReleaseRef("other", STACK),)))
    assert plan.releases == ()
    assert "other/kube-prometheus-stack" in message(plan, "GF972")


def test_a_record_that_cannot_be_read_is_a_blocker() -> None:
    facts = cluster(unreadable={ReleaseRef("monitoring", STACK): "truncated"})
    assert [found.code for found in removal(facts).blockers] == ["GF820"]


@pytest.mark.parametrize("name", [PLUGIN, OPERATOR])
def test_pods_with_gpus_stop_the_removal_unless_allowed(name: str) -> None:
    remains = Remains(pods=(POD,) * 5)
    plan = removal(cluster(release(name)), remains)
    assert [found.code for found in plan.blockers] == ["GF970"]
    assert "5 pods" in message(plan, "GF970")
    assert "Pod team/train-0" in message(plan, "GF970")
    assert not removal(cluster(release(name)), remains, cluster_allow_disruption=True).blockers


def test_pods_with_gpus_do_not_stop_what_advertises_none() -> None:
    assert not removal(cluster(release(STACK), release(EXPORTER)), Remains(pods=(POD,))).blockers
    foreign = release(PLUGIN, labels={})
    assert not removal(cluster(foreign), Remains(pods=(POD,))).blockers


@pytest.mark.parametrize(("namespace", "blocked"), [("gpu-operator", False), ("team", True)])
def test_the_operators_own_test_pods_do_not_stop_it(namespace: str, blocked: bool) -> None:
    ref = ObjectRef("Pod", namespace, "nvidia-device-plugin-validator")
    pod = PodUse(ref, {"app": "nvidia-device-plugin-validator"})
    assert bool(removal(cluster(release(OPERATOR)), Remains(pods=(pod,))).blockers) is blocked


def test_a_claim_that_helm_would_delete_stops_the_removal() -> None:
    claim = ObjectRef("PersistentVolumeClaim", "monitoring", "grafana")
    facts = cluster(release(STACK, claims=(claim,)))
    assert [found.code for found in removal(facts, Remains(claims=(claim,))).blockers] == ["GF977"]
    assert not removal(facts).blockers  # it is gone


def test_grafanas_password_stays_with_its_database() -> None:
    secret = made("Secret", "gpufleet-grafana", "monitoring")
    claim = ObjectRef("PersistentVolumeClaim", "monitoring", "storage-grafana-0")
    plan = removal(cluster(release(STACK)), Remains(objects=(secret,), claims=(claim,)))
    assert plan.objects == ()
    assert [found.code for found in plan.findings if "Secret" in found.message] == ["GF976"]
    elsewhere = replace(claim, namespace="other")
    for claims in ((), (elsewhere,)):
        there = Remains(objects=(secret,), claims=claims)
        assert removal(cluster(release(STACK)), there).objects == (secret,)


def test_claims_in_the_namespaces_of_releases_stay_and_are_named() -> None:
    spaces = ("monitoring", "kube-system", "team")
    claims = tuple(ObjectRef("PersistentVolumeClaim", space, "data") for space in spaces)
    plan = removal(cluster(release(STACK), release(PLUGIN)), Remains(claims=claims))
    assert message(plan, "GF974").startswith("1 PersistentVolumeClaim stays in")
    assert "monitoring/data" in message(plan, "GF974")


def test_crds_of_gpufleet_without_objects_of_others_go() -> None:
    plan = removal(cluster(release(STACK)), Remains(crds=(crd(),)))
    assert [found.name for found in plan.crds] == [CRD]
    assert f"delete CRD {CRD}" in plan.steps()


def test_crds_with_objects_of_others_stay_and_are_named_with_their_number() -> None:
    plan = removal(FACTS, Remains(crds=(crd(users=(RULE, RULE)),)))  # also when all else is gone
    assert plan.crds == ()
    assert f"CRD {CRD} stays: it has 2 objects" in message(plan, "GF973")
    assert "PrometheusRule team/theirs" in message(plan, "GF973")


@pytest.mark.parametrize("users", [(), (RULE,)])
def test_crds_of_another_user_stay_and_are_named_with_their_charts_release(users: Any) -> None:
    remains = Remains(crds=(crd(ours=False, users=users),))
    plan = removal(cluster(release(STACK)), remains)
    assert plan.crds == ()
    assert ("1 object of others" in message(plan, "GF973")) is bool(users)
    assert codes(removal(cluster(release(PLUGIN)), remains)) == []


@pytest.mark.parametrize("users", [(), (RULE,)])
def test_a_crd_of_a_releases_templates_goes_with_it_unless_others_use_it(users: Any) -> None:
    facts = cluster(release(STACK))
    ref = ReleaseRef("monitoring", STACK)
    plan = removal(facts, Remains(crds=(crd(release=ref, ours=False, users=users),)))
    assert [found.code for found in plan.blockers] == (["GF978"] if users else [])
    assert plan.crds == ()  # helm deletes it
    other = crd(release=ReleaseRef("team", "theirs"), ours=False, users=(RULE,))
    assert not removal(facts, Remains(crds=(other,))).findings[:-1]


@pytest.mark.parametrize(("spaces", "blocked"), [("monitoring", True), ("team", False)])
def test_a_crd_of_a_release_whose_objects_are_not_known_stops_the_removal(
    spaces: str, blocked: bool
) -> None:
    found = crd(release=ReleaseRef(spaces, STACK), ours=False, unknown="503 no healthy upstream")
    plan = removal(cluster(release(STACK)), Remains(crds=(found,)))
    assert [found.code for found in plan.blockers] == (["GF982"] if blocked else [])
    assert not blocked or "503 no healthy upstream" in message(plan, "GF982")


def test_a_runtime_class_that_other_pods_select_stays() -> None:
    plugin = replace(work("nvidia-device-plugin", "k8s-device-plugin"), namespace="kube-system")
    plugin = replace(plugin, release=ReleaseRef("kube-system", PLUGIN))
    facts = cluster(release(PLUGIN, workloads=(plugin.ref,)), workloads=(plugin,))
    own = PodUse(ObjectRef("Pod", "kube-system", "nvidia-device-plugin-x"), {}, plugin.ref)
    objects = (made("RuntimeClass", "nvidia"),)
    plan = removal(facts, Remains(objects=objects, classes={"nvidia": (own,)}))
    assert plan.of_kind("RuntimeClass") == objects
    plan = removal(facts, Remains(objects=objects, classes={"nvidia": (own, POD)}))
    assert plan.objects == ()
    assert "1 pod selects it" in message(plan, "GF976")


def test_the_password_of_an_earlier_gpufleet_stays_and_is_named() -> None:
    secret = ObjectRef("Secret", "monitoring", "gpufleet-grafana")
    plan = removal(FACTS, Remains(unmarked=(secret,)))
    (found,) = plan.findings
    assert found.code == "GF976"
    assert "kubectl delete secret gpufleet-grafana -n monitoring" in found.remedy


def test_namespaces_that_gpufleet_did_not_create_stay() -> None:
    space = (made("Namespace", "monitoring"),)
    facts = cluster(release(STACK), release(NFD), release(PLUGIN))
    plan = removal(facts, Remains(namespaces=space))
    assert plan.namespaces == space
    assert "node-feature-discovery" in message(plan, "GF975")  # kube-system goes without saying
    assert "delete namespace monitoring if it is empty" in plan.steps()


def test_an_empty_namespace_of_a_removal_that_was_killed_goes() -> None:
    spaces = (made("Namespace", "monitoring"),)
    plan = removal(FACTS, Remains(namespaces=spaces, filled={"monitoring": ()}))
    assert plan.steps() == ["delete namespace monitoring if it is empty"]
    web = ObjectRef("Pod", "monitoring", "web")
    plan = removal(FACTS, Remains(namespaces=spaces, filled={"monitoring": (web,)}))
    assert plan.steps() == []
    assert "1 object that gpufleet did not create, such as Pod monitoring/web" in (
        message(plan, "GF975")
    )


def test_what_a_release_leaves_behind_goes_with_it() -> None:
    left = (made("Service", "kubelet", "kube-system"), made("Secret", "admission", "monitoring"))
    remains = Remains(left={STACK: left})
    plan = removal(cluster(release(STACK)), remains)
    assert plan.left == plan.objects == left
    assert removal(FACTS, remains).objects == ()  # not without the release
    theirs = replace(work("operator", "operator"), release=ReleaseRef("team", STACK))
    plan = removal(cluster(release(STACK), workloads=(theirs,)), remains)
    assert plan.objects == left[1:]  # theirs may have created the other


def test_labels_of_nodes_go() -> None:
    plan = removal(FACTS, Remains(nodes={"b": "x/y", "a": "x/y"}))
    assert plan.nodes == (("a", "x/y"), ("b", "x/y"))
    assert plan.steps() == ["remove gpufleet's label from nodes a, b"]


def test_a_plan_is_described_for_the_report() -> None:
    objects = (made("ConfigMap", "map", "monitoring"),)
    plan = removal(cluster(release(STACK)), Remains(objects=objects, crds=(crd(),)))
    described = plan.describe()
    assert described["releases"] == ["monitoring/kube-prometheus-stack"]
    assert described["objects"] == ["ConfigMap monitoring/map"]
    assert described["crds"] == [CRD]
    assert len(described["steps"]) == 3
