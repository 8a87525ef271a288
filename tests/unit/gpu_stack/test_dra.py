"""Nodes whose GPUs NVIDIA's DRA driver offers: its release, their label, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from gpufleet.core.merge import value_at
from gpufleet.gpu_stack.model import StackPlan
from gpufleet.gpu_stack.node_labels import group_changes
from gpufleet.gpu_stack.node_sharing import CONFIG_LABEL
from gpufleet.kube.facts import ClusterFacts, ClusterNode, HelmRelease, Placement
from gpufleet.kube.keepers import Keeper
from gpufleet.kube.node_answers import DRA_LABEL
from gpufleet.kube.scheduling import fitting_nodes
from tests.unit.gpu_stack.gpu_clusters import FACTS, LABEL, names, stack, values, work

PLUGIN, DRA = "nvidia-device-plugin", "dra-driver-nvidia-gpu"
CLAIMED = {"gpu_sharing": "dra"}
SLICED = {"gpu_sharing": "time-slicing", "gpu_replicas": 4}
DYNAMIC: dict[str, Any] = {"device_plugin_dra_values": {"featureGates": {"DynamicMIG": True}}}
TERMS = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def gpu(name: str, runtime: str = "containerd://2.1.5", **labels: str) -> ClusterNode:
    """A node whose GPUs the plugin advertises."""
    there, gpus = {**LABEL, **labels}, {"nvidia.com/gpu": 8}
    return ClusterNode(name, there, (), gpus, gpus, runtime=runtime)


def served(name: str, *, ours: bool = True, value: str = "true") -> ClusterNode:
    """A node that the DRA driver serves."""
    node = gpu(name)
    labels, own = {**node.labels, DRA_LABEL: value}, (DRA_LABEL,) if ours else ()
    return replace(node, labels=labels, own_labels=own, allocatable={"nvidia.com/gpu": 0})


def cluster(*nodes: ClusterNode) -> ClusterFacts:
    """A cluster that serves claims, with the GPU nodes gpu-1 and gpu-2, unless others are given."""
    apis = frozenset({"resource.k8s.io/v1"})
    return replace(FACTS, nodes=nodes or (gpu("gpu-1"), gpu("gpu-2")), apis=apis)


def planned(
    keys: Mapping[str, Mapping[str, Any]] | None = None,
    facts: ClusterFacts | None = None,
    **data: Any,
) -> StackPlan:
    """The plan of a cluster whose plugin is gpufleet's, with the DRA driver on gpu-1."""
    data = {"device_plugin_enabled": True, **data}
    return stack(facts or cluster(), keys=keys or {"gpu-1": CLAIMED}, **data)


def labels(plan: StackPlan) -> dict[str, tuple[str, str]]:
    return {change.node: (change.label, change.after) for change in plan.config_labels}


def refusals(plan: StackPlan) -> str:
    assert {found.code for found in plan.blockers} <= {"GF972"}
    return " ".join(found.message for found in plan.blockers)


def test_the_driver_is_installed_only_if_a_node_asks_for_it() -> None:
    assert DRA not in names(planned({"gpu-1": SLICED}))
    assert DRA not in names(planned({"gpu-9": CLAIMED})), "a host of another cluster"
    plan = planned()
    assert names(plan).index(DRA) == names(plan).index(PLUGIN) + 1
    assert not plan.blockers


def test_its_pods_run_on_nodes_with_the_label_and_offer_gpus() -> None:
    plan = planned(device_plugin_dra_values={"logVerbosity": "6"})
    found = values(plan, DRA)
    assert found["kubeletPlugin"]["nodeSelector"] == {DRA_LABEL: "true"}
    [term] = value_at(found["kubeletPlugin"], TERMS)
    by_label = {"key": DRA_LABEL, "operator": "In", "values": ["true"]}
    assert term == {"matchExpressions": [by_label]}, "not the labels of an NFD"
    assert value_at(found, "resources.gpus.enabled") is True
    assert value_at(found, "resources.computeDomains.enabled") is False
    assert found["gpuResourcesEnabledOverride"] is True, "the chart refuses to install without it"
    assert (found["resourceApiVersion"], found["nvidiaDriverRoot"]) == ("resource.k8s.io/v1", "/")
    assert found["logVerbosity"] == "6"
    (release,) = [each for each in plan.releases if each.chart == DRA]
    assert release.ready.nodes == {f"{DRA}-kubelet-plugin": ("gpu-1",)}


def test_the_plugin_runs_on_all_other_nodes() -> None:
    plan = planned()
    terms = tuple(value_at(values(plan, PLUGIN), TERMS))
    nodes = [served("gpu-1"), gpu("gpu-2"), served("gpu-3", value="false")]
    nodes += [replace(node, name=f"by-{number}") for number, node in enumerate(_otherwise(nodes))]
    fitting = [node.name for node in fitting_nodes(Placement(terms=terms), nodes)]
    assert fitting == ["gpu-2", "gpu-3", "by-1", "by-2"]
    (release,) = [each for each in plan.releases if each.chart == PLUGIN]
    assert release.ready.nodes[PLUGIN] == ("gpu-2",)
    everywhere = planned({"gpu-1": CLAIMED, "gpu-2": CLAIMED})
    (release,) = [each for each in everywhere.releases if each.chart == PLUGIN]
    assert release.ready.nodes[PLUGIN] == (), "a DaemonSet without a pod is ready"


def _otherwise(nodes: list[ClusterNode]) -> list[ClusterNode]:
    """The same nodes with another label of GPU nodes."""
    other = {"feature.node.kubernetes.io/pci-10de.present": "true"}
    return [
        replace(node, labels={**node.labels, **dict.fromkeys(LABEL, "false"), **other})
        for node in nodes
    ]


def test_a_node_moves_to_the_driver_and_back() -> None:
    (sentence,) = group_changes(planned().config_labels)
    assert sentence == "Offer the GPUs of gpu-1 by the DRA driver (nvidia.com/gpu 8 -> 0)"
    assert labels(planned()) == {"gpu-1": (DRA_LABEL, "true")}
    there = cluster(served("gpu-1"), gpu("gpu-2"))
    assert labels(planned(facts=there)) == {}
    assert labels(planned({"gpu-2": SLICED}, there)) == {
        "gpu-1": (CONFIG_LABEL, ""),
        "gpu-2": (CONFIG_LABEL, "time-slicing-4"),
    }
    assert labels(planned({"gpu-1": SLICED}, there)) == {"gpu-1": (CONFIG_LABEL, "time-slicing-4")}
    sliced = replace(gpu("gpu-1", **{CONFIG_LABEL: "time-slicing-4"}), own_labels=(CONFIG_LABEL,))
    moved = planned(facts=cluster(sliced)).config_labels
    assert [(change.label, change.retires) for change in moved] == [(DRA_LABEL, True)]


def test_a_label_of_others_stays() -> None:
    theirs = cluster(served("gpu-1", ours=False), gpu("gpu-2"))
    assert labels(planned(facts=theirs)) == labels(planned({"gpu-2": {}}, theirs)) == {}
    left = planned({"gpu-2": {}}, theirs)
    assert "GF974" in {found.code for found in left.findings}, "the plugin avoids the node"
    contrary = planned(facts=cluster(served("gpu-1", ours=False, value="false")))
    assert labels(contrary) == {}
    assert "GF974" in {found.code for found in contrary.findings}


def test_all_nodes_of_a_cluster_move_back() -> None:
    """The plugin is not awaited on them: they have the driver's label until it is installed."""
    plan = planned({"gpu-1": {}, "gpu-2": {}}, cluster(served("gpu-1"), served("gpu-2")))
    (plugin,) = [each for each in plan.releases if each.chart == PLUGIN]
    empty = {PLUGIN: (), f"{PLUGIN}-gpu-feature-discovery": ()}
    assert empty.items() <= plugin.ready.nodes.items()
    assert labels(plan) == {"gpu-1": (CONFIG_LABEL, ""), "gpu-2": (CONFIG_LABEL, "")}
    assert not plan.blockers


def test_another_node_joins_those_of_the_driver() -> None:
    """The driver is awaited on nodes that have its label, once it is installed."""
    found = HelmRelease(DRA, DRA, 1, "deployed", DRA, "0.4.1", "", {}, labels={"gpufleet": "true"})
    facts = replace(cluster(served("gpu-1"), gpu("gpu-2")), releases=(found,))
    plan = planned({"gpu-1": CLAIMED, "gpu-2": CLAIMED}, facts)
    (driver,) = [each for each in plan.releases if each.chart == DRA]
    assert driver.ready.nodes == {f"{DRA}-kubelet-plugin": ("gpu-1",)}


def test_nodes_do_not_move_while_pods_use_their_gpus() -> None:
    pods = {"gpu-1": ("team/a",)}
    to = planned(facts=replace(cluster(), gpu_pods=pods))
    back = planned({"gpu-1": {}}, replace(cluster(served("gpu-1")), gpu_pods=pods))
    stays = planned(facts=replace(cluster(served("gpu-1")), gpu_pods=pods))
    assert [{found.code for found in plan.blockers} for plan in (to, back, stays)] == [
        {"GF976"},
        {"GF976"},
        set(),
    ]


def test_a_cluster_without_the_api_of_claims_is_refused() -> None:
    facts = replace(cluster(), apis=frozenset({"resource.k8s.io/v1beta1"}))
    assert "resource.k8s.io/v1" in refusals(planned(facts=facts))


@pytest.mark.parametrize(
    ("runtime", "fits"),
    [
        ("containerd://1.6.20~ds1", False),
        ("containerd://1.7.0", True),
        ("containerd://2.3.4", True),
        ("cri-o://1.34.1", True),
        ("docker://28.0.1", False),
        ("containerd://", False),
        ("", True),
    ],
)
def test_a_runtime_without_cdi_is_refused(runtime: str, fits: bool) -> None:
    plan = planned(facts=cluster(gpu("gpu-1", runtime), gpu("gpu-2", "docker://28.0.1")))
    assert ("CDI" in refusals(plan)) is not fits
    assert "gpu-2" not in refusals(plan)


def test_cdi_that_is_off_by_default_must_be_switched_on() -> None:
    old, new = gpu("gpu-1", "containerd://1.7.28"), gpu("gpu-2", "containerd://2.0.0")
    off = {**CLAIMED, "toolkit_cdi": False}
    found = refusals(planned({"gpu-1.example": off, "gpu-2.example": off}, cluster(old, new)))
    assert "CDI" in found
    assert "gpu-1" in found
    assert "gpu-2" not in found


@pytest.mark.parametrize(
    ("there", "fits"),
    [
        ({"nvidia.com/cuda.driver.major": "550"}, False),
        ({"nvidia.com/cuda.driver-version.full": "560.35.05"}, False),
        ({"nvidia.com/cuda.driver.major": "565"}, True),
        ({"nvidia.com/cuda.driver.major": "none"}, True),
        ({}, True),
    ],
)
def test_an_old_driver_is_refused(there: dict[str, str], fits: bool) -> None:
    plan = planned(facts=cluster(gpu("gpu-1", **there), gpu("gpu-2")))
    assert ("565" in refusals(plan)) is not fits


def test_the_driver_and_a_layout_do_not_both_divide_gpus() -> None:
    keys = {"gpu-1": {**CLAIMED, "gpu_mig": "1g.10gb:7"}, "gpu-2": CLAIMED}
    assert "gpu-1" in refusals(planned(keys, **DYNAMIC))
    assert "gpu-2" not in refusals(planned(keys, **DYNAMIC))
    off = {"gpu-1": {**CLAIMED, "gpu_mig": "off"}}
    assert "DynamicMIG" in refusals(planned(off, **DYNAMIC)), "gpufleet would switch MIG off"
    assert not planned(keys).blockers, "the driver offers the devices of the layout"


def test_it_is_not_installed_beside_the_operator() -> None:
    bare = cluster(replace(gpu("gpu-1"), allocatable={}))
    plan = stack(bare, keys={"gpu-1": CLAIMED}, cluster_stack="gpu-operator")
    assert "gpu-operator" in refusals(plan)


def test_it_is_not_installed_beside_a_plugin_of_others() -> None:
    assert "gpu-1" in refusals(planned(device_plugin_enabled=False))
    theirs = work("theirs", "k8s-device-plugin")
    foreign = replace(cluster(), workloads=(theirs,))
    assert "theirs" in refusals(planned(facts=foreign))
    bare = cluster(replace(gpu("gpu-1"), allocatable={}), gpu("gpu-2"))
    assert "theirs" in refusals(planned(facts=replace(bare, workloads=(theirs,))))
    elsewhere = replace(theirs, placement=Placement(node_selector={"pool": "other"}))
    assert not refusals(planned(facts=replace(cluster(), workloads=(elsewhere,))))
    gone = replace(gpu("gpu-1"), allocatable={"nvidia.com/gpu": 0})
    plan = planned(facts=cluster(gone, gpu("gpu-2")), device_plugin_enabled=False)
    assert (DRA in names(plan), PLUGIN in names(plan), refusals(plan)) == (True, False, "")
    assert labels(plan) == {"gpu-1": (DRA_LABEL, "true")}


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("nvidia-dra-driver-gpu-kubelet-plugin", "k8s-dra-driver-gpu"),
        ("gpus", "dra-driver-nvidia-gpu"),
    ],
)
def test_it_is_not_installed_beside_another_dra_driver(name: str, image: str) -> None:
    """https://github.com/kai-scheduler/KAI-Scheduler/pull/1177 (read 2026-11-29)"""
    theirs = replace(work(name, image), host_paths=("/var/lib/kubelet/plugins_registry",))
    facts = replace(cluster(), workloads=(theirs,))
    assert name in refusals(planned(facts=facts))
    assert not planned({"gpu-1": SLICED}, facts).blockers
    named_like_it = replace(theirs, host_paths=())
    assert not planned(facts=replace(cluster(), workloads=(named_like_it,))).blockers


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ({"key": DRA_LABEL, "operator": "NotIn", "values": ["true"]}, True),
        ({"key": DRA_LABEL, "operator": "DoesNotExist"}, True),
        ({"key": DRA_LABEL, "operator": "NotIn", "values": ["false"]}, False),
        ({"key": DRA_LABEL, "operator": "NotIn", "values": 1}, False),
        ({"key": "pool", "operator": "In", "values": ["gpu"]}, False),
        ("pool", False),
    ],
)
def test_affinity_of_the_user_must_keep_the_plugin_away(expression: Any, fits: bool) -> None:
    terms: dict[str, Any] = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    own = {"affinity": {"nodeAffinity": required}}
    assert ("affinity" in refusals(planned(device_plugin_values=own))) is not fits
    assert not planned({"gpu-1": SLICED}, device_plugin_values=own).blockers


@pytest.mark.parametrize("more", [{"gpu_replicas": 4}, {"gpu_mig_strategy": "mixed"}])
def test_keys_of_the_plugin_contradict_the_driver(more: dict[str, Any]) -> None:
    plan = planned({"gpu-1": {**CLAIMED, "gpu_mig": "1g.10gb:7", **more}})
    assert {found.code for found in plan.blockers} == {"GF975"}


def test_a_label_waits_for_the_driver_that_flux_installs() -> None:
    keeper = Keeper("Flux", "HelmRelease", "flux-system", "gpufleet")
    found = values(planned(), PLUGIN)
    plugin = HelmRelease(
        PLUGIN, "kube-system", 1, "deployed", PLUGIN, "0.20.0", "", found, keeper=keeper
    )
    assert labels(planned(facts=replace(cluster(), releases=(plugin,)))) == {}
    driver = replace(plugin, name=DRA, namespace=DRA, chart=DRA, values={})
    both = replace(cluster(), releases=(plugin, driver))
    assert labels(planned(facts=both)) == {"gpu-1": (DRA_LABEL, "true")}
    earlier = replace(plugin, values={"affinity": {}})
    assert labels(planned(facts=replace(cluster(), releases=(earlier, driver)))) == {}
