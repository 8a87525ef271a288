"""The plan of a removal from a cluster: the releases that go, and the objects that stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.gpu_stack.removal import Owned, Remains, StackRemoval, plan_stack_removal
from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.helm.builder import DRA, EXPORTER, NFD, OPERATOR, PLUGIN, STACK
from gpufleet.kube.facts import ClusterFacts, Crd, HelmRelease, ObjectRef, ReleaseRef
from gpufleet.kube.helm_releases import ADOPTED_LABEL, OWNER_LABEL
from gpufleet.kube.keepers import Keeper
from tests.unit.gpu_stack.gpu_clusters import CATALOG, FACTS

OURS = {OWNER_LABEL: "1234"}
SPACES = {PLUGIN: "kube-system", NFD: "node-feature-discovery", OPERATOR: "gpu-operator", DRA: DRA}
RULES = "nodefeaturerules.nfd.k8s-sigs.io"
RULE = ObjectRef("NodeFeatureRule", "", "theirs")
NOTHING = Remains()


def release(name: str, **more: Any) -> HelmRelease:
    space = SPACES.get(name, "monitoring")
    found = HelmRelease(name, space, 1, "deployed", name, "1.2.3", "1", {}, labels=OURS)
    return replace(found, **more)


def cluster(*releases: HelmRelease, **more: Any) -> ClusterFacts:
    return replace(FACTS, releases=releases, **more)


def removal(facts: ClusterFacts, remains: Remains = NOTHING, **data: Any) -> StackRemoval:
    settings, problems = load_cluster_settings(data)
    assert settings, problems
    return plan_stack_removal(settings, facts, remains)


def codes(plan: StackRemoval) -> list[str]:
    return [finding.code for finding in plan.findings]


def said(plan: StackRemoval, code: str) -> str:
    (found,) = (finding for finding in plan.findings if finding.code == code)
    return f"{found.message} {found.remedy}"


def made(kind: str, name: str, namespace: str = "") -> Owned:
    return Owned(ObjectRef(kind, namespace, name), f"/{kind}/{name}")


def claim(namespace: str, name: str = "data") -> ObjectRef:
    return ObjectRef("PersistentVolumeClaim", namespace, name)


def pod(
    resource: str = "", *, namespace: str = "team", phase: str = "Running", **spec: Any
) -> dict[str, Any]:
    limits = {resource: "1"} if resource else {}
    containers = [{"name": "train", "resources": {"limits": limits}}]
    return {
        "metadata": {"name": "train", "namespace": namespace},
        "spec": {"nodeName": "gpu-1", "containers": containers, **spec},
        "status": {"phase": phase},
    }


def test_releases_go_in_reverse_order_of_their_installation() -> None:
    plan = removal(cluster(*(release(name) for name in CATALOG.charts)))
    assert [found.name for found in plan.releases] == [*reversed(CATALOG.charts)]
    assert plan.releases[-1].name == STACK  # other releases have objects of its CRDs
    assert not plan.blockers
    assert plan.movements[STACK] == {"before": "1.2.3", "after": None}


def test_nothing_is_planned_where_nothing_is() -> None:
    plan = removal(FACTS)
    assert (plan.describe()["steps"], plan.findings, plan.movements) == ([], (), {})


@pytest.mark.parametrize("status", ["failed", "pending-install", "uninstalling", "uninstalled"])
def test_an_unfinished_installation_or_removal_is_continued(status: str) -> None:
    plan = removal(cluster(release(STACK, status=status)))
    assert [found.name for found in plan.releases] == [STACK]


@pytest.mark.parametrize("labels", [{}, {**OURS, ADOPTED_LABEL: "true"}])
def test_a_release_of_another_user_stays_and_is_named(labels: dict[str, str]) -> None:
    plan = removal(cluster(release(STACK, labels=labels), release(EXPORTER)))
    assert [found.name for found in plan.releases] == [EXPORTER]
    assert "helm uninstall kube-prometheus-stack -n monitoring" in said(plan, "GF971")
    assert plan.movements[STACK] == {"before": "1.2.3", "after": "1.2.3"}


def test_a_release_that_stays_keeps_the_secrets_that_it_reads() -> None:
    secrets = made("Secret", "gpufleet-grafana", "monitoring"), made("Secret", "other", "gpu")
    there = Remains(objects=secrets, claims=(claim("monitoring"),))
    plan = removal(cluster(release(STACK, labels={})), there)
    assert plan.objects == secrets[1:]
    assert "gpufleet-grafana" not in " ".join(map(str, plan.findings))


def test_a_release_of_flux_goes_by_its_files() -> None:
    keeper = Keeper("Flux", "HelmRelease", "monitoring", "gpufleet-dcgm-exporter")
    text = said(removal(cluster(release(EXPORTER, keeper=keeper))), "GF971")
    assert "HelmRelease" in text
    assert "helm uninstall" not in text


def test_what_another_user_uninstalled_is_not_named() -> None:
    assert codes(removal(cluster(release(STACK, labels={}, status="uninstalled")))) == []


def test_a_release_in_another_namespace_stays_and_is_named() -> None:
    plan = removal(FACTS, Remains(elsewhere=(ReleaseRef("other", STACK),)))
    assert plan.releases == ()
    assert "other/kube-prometheus-stack" in said(plan, "GF971")


def test_a_record_that_cannot_be_read_is_a_blocker() -> None:
    facts = cluster(unreadable={ReleaseRef("monitoring", STACK): "truncated"})
    assert [found.code for found in removal(facts).blockers] == ["GF820"]


@pytest.mark.parametrize("name", [PLUGIN, OPERATOR])
@pytest.mark.parametrize(
    "resource", ["nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb"]
)
def test_pods_with_gpus_stop_the_removal_unless_allowed(name: str, resource: str) -> None:
    remains = Remains(pods=[pod(resource)] * 5)
    plan = removal(cluster(release(name)), remains)
    assert [found.code for found in plan.blockers] == ["GF970"]
    assert "Pod team/train" in said(plan, "GF970")
    assert not removal(cluster(release(name)), remains, cluster_allow_disruption=True).blockers


def test_pods_with_claims_stop_the_removal_of_the_dra_driver() -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    remains = Remains(pods=[pod(resourceClaims=claims)])
    assert codes(removal(cluster(release(DRA)), remains)) == ["GF970"]
    ended = Remains(pods=[pod(resourceClaims=claims, phase="Succeeded")])
    assert not removal(cluster(release(DRA)), ended).blockers


@pytest.mark.parametrize(
    ("chart", "found"),
    [
        (EXPORTER, pod("nvidia.com/gpu")),  # it advertises none
        (PLUGIN, pod("nvidia.com/gpu", phase="Succeeded")),
        (PLUGIN, pod("nvidia.com/gpu", nodeName="")),
        (PLUGIN, pod("nvidia.com/hostdev")),
        (PLUGIN, pod()),
        (OPERATOR, pod("nvidia.com/gpu", namespace="gpu-operator")),  # its own test pod
    ],
)
def test_other_pods_do_not_stop_it(chart: str, found: dict[str, Any]) -> None:
    assert not removal(cluster(release(chart)), Remains(pods=[found])).blockers
    foreign = release(PLUGIN, labels={})
    assert not removal(cluster(foreign), Remains(pods=[pod("nvidia.com/gpu")])).blockers


def test_a_claim_that_helm_would_delete_stops_the_removal() -> None:
    there = claim("monitoring", "grafana")
    facts = cluster(release(STACK, claims=(there,)))
    assert [found.code for found in removal(facts, Remains(claims=(there,))).blockers] == ["GF978"]
    assert not removal(facts).blockers  # it is gone


@pytest.mark.parametrize("users", [(), (RULE,)])
@pytest.mark.parametrize("owner", [ReleaseRef(SPACES[NFD], NFD), ReleaseRef("team", "theirs")])
def test_objects_of_others_of_a_crd_that_helm_would_delete_stop_it(
    users: tuple[ObjectRef, ...], owner: ReleaseRef
) -> None:
    crd = Crd(RULES, "NodeFeatureRule", ("v1alpha1",), {}, owner)
    plan = removal(cluster(release(NFD), crds={RULES: crd}), Remains(users={RULES: users}))
    blocked = users and owner.name == NFD
    assert [found.code for found in plan.blockers] == (["GF978"] if blocked else [])


def test_what_may_have_data_of_others_stays_with_the_commands_that_delete_it() -> None:
    left = {STACK: (ObjectRef("Service", "kube-system", "kubelet"),)}
    remains = Remains(
        shared=tuple(
            ObjectRef(kind, "", name)
            for kind, name in (
                ("RuntimeClass", "nvidia"),
                ("CustomResourceDefinition", RULES),
                ("Namespace", "monitoring"),
            )
        ),
        claims=(claim("monitoring"), claim("kube-system"), claim("team")),
        left=left,
    )
    plan = removal(cluster(release(STACK), release(PLUGIN)), remains)
    assert plan.objects == ()
    commands = said(plan, "GF973").partition("Delete what nothing needs: ")[2].split("; ")
    assert commands == [
        "kubectl delete persistentvolumeclaim data -n monitoring",
        "kubectl delete service kubelet -n kube-system",
        "kubectl delete runtimeclass nvidia",
        f"kubectl delete crd {RULES}",
        "kubectl delete namespace monitoring",
    ]
    assert codes(removal(FACTS, Remains(left=left))) == []  # its release is not gpufleet's


def test_grafanas_password_stays_with_its_database() -> None:
    secret = made("Secret", "gpufleet-grafana", "monitoring")
    plan = removal(
        cluster(release(STACK)), Remains(objects=(secret,), claims=(claim("monitoring"),))
    )
    assert plan.objects == ()
    assert "kubectl delete secret gpufleet-grafana -n monitoring" in said(plan, "GF973")
    for claims in ((), (claim("other"),)):
        there = Remains(objects=(secret,), claims=claims)
        assert removal(cluster(release(STACK)), there).objects == (secret,)


def test_a_plan_is_described_for_the_report() -> None:
    remains = Remains(objects=(made("ConfigMap", "map", "monitoring"),), nodes={"b": "x", "a": "x"})
    described = removal(cluster(release(STACK)), remains).describe()
    assert described == {
        "steps": [
            "uninstall release monitoring/kube-prometheus-stack (kube-prometheus-stack 1.2.3)",
            "delete ConfigMap monitoring/map",
            "remove gpufleet's label from nodes a, b",
        ],
        "releases": ["monitoring/kube-prometheus-stack"],
        "objects": ["ConfigMap monitoring/map"],
    }


@pytest.mark.parametrize("label", ["nvidia.com/device-plugin.config", "gpufleet/dra-driver"])
def test_labels_of_sharing_go_if_gpufleet_set_them(label: str) -> None:
    nodes = [replace(node, labels={**node.labels, label: "whole"}) for node in FACTS.nodes]
    nodes[1] = replace(nodes[1], own_labels=(label,))
    plan = removal(replace(FACTS, nodes=tuple(nodes)))
    assert plan.nodes == (("gpu-1", label),)
    marked = Remains(nodes={"gpu-1": "nvidia.com/gpu.present"})
    both = removal(replace(FACTS, nodes=tuple(nodes)), marked)
    assert both.nodes == (("gpu-1", label), ("gpu-1", "nvidia.com/gpu.present"))
    assert both.describe()["steps"] == ["remove gpufleet's label from nodes gpu-1"]
