"""How nodes share their GPUs: configurations of the device plugin, and labels that name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml

from gpufleet.core.merge import value_at
from gpufleet.gpu_stack.model import StackPlan
from gpufleet.gpu_stack.node_labels import group_changes
from gpufleet.gpu_stack.node_sharing import CONFIG_LABEL
from gpufleet.kube.facts import ClusterFacts, ClusterNode, HelmRelease
from gpufleet.kube.keepers import Keeper
from tests.unit.gpu_stack.gpu_clusters import FACTS, LABEL, codes, stack, values

PLUGIN, OPERATOR = "nvidia-device-plugin", "gpu-operator"
SLICED = {"gpu_sharing": "time-slicing", "gpu_replicas": 4}
MPS = {"gpu_sharing": "mps", "gpu_replicas": 2}
MIXED = {"gpu_mig": "3g.40gb, 1g.10gb:4"}
SEVENTHS = {"gpu_mig": "1g.10gb:7"}


def gpu(name: str, gpus: int = 8, **labels: str) -> ClusterNode:
    """A node of which GFD counted the GPUs and the plugin advertises them."""
    there = {**LABEL, "nvidia.com/gpu.count": str(gpus), **labels}
    return ClusterNode(name, there, (), {"nvidia.com/gpu": gpus}, {"nvidia.com/gpu": gpus})


def labelled(node: ClusterNode, config: str, *, ours: bool = True) -> ClusterNode:
    labels = {**node.labels, CONFIG_LABEL: config}
    return replace(node, labels=labels, own_labels=(CONFIG_LABEL,) if ours else ())


def cluster(*nodes: ClusterNode) -> ClusterFacts:
    """A cluster with the GPU nodes gpu-1 and gpu-2, unless others are given."""
    return replace(FACTS, nodes=nodes or (gpu("gpu-1"), gpu("gpu-2")))


def shared(keys: Mapping[str, Mapping[str, Any]], *nodes: ClusterNode, **data: Any) -> StackPlan:
    """The plan of a cluster whose plugin is gpufleet's, in a version that can share by MPS."""
    if any(each.get("gpu_sharing") == "mps" for each in keys.values()):
        data = {"cluster_chart_versions": {PLUGIN: "0.18.1"}, **data}
    return stack(cluster(*nodes), keys=keys, device_plugin_enabled=True, **data)


def configs(plan: StackPlan) -> dict[str, Any]:
    found = value_at(values(plan, PLUGIN), "config.map", {})
    return {name: yaml.safe_load(text) for name, text in found.items()}


def labels(plan: StackPlan) -> dict[str, str]:
    return {change.node: change.after for change in plan.config_labels}


def refusal(plan: StackPlan) -> str:
    """The message of the only blocker."""
    (found,) = plan.blockers
    assert found.code == "GF972"
    return found.message


def test_without_keys_nothing_changes() -> None:
    plan = shared({"gpu-1": {"gpu_mig": "off"}, "gpu-2": {}})
    assert (configs(plan), labels(plan), codes(plan)) == ({}, {}, {"GF914"})
    plan = shared({}, device_plugin_time_slicing=4, device_plugin_mig_strategy="mixed")
    text = value_at(values(plan, PLUGIN), "config.map.shared")
    assert text == (
        "version: v1\nsharing:\n  timeSlicing:\n    resources:\n"
        "      - name: nvidia.com/gpu\n        replicas: 4\n"
    )
    assert values(plan, PLUGIN)["migStrategy"] == "mixed"


def test_each_mode_has_one_configuration_that_its_nodes_name() -> None:
    nodes = (gpu("gpu-1"), gpu("gpu-2"), gpu("gpu-3"), gpu("gpu-4"))
    plan = shared({"gpu-1": SLICED, "gpu-2": SLICED, "gpu-3": MPS}, *nodes)
    assert labels(plan) == {"gpu-1": "time-slicing-4", "gpu-2": "time-slicing-4", "gpu-3": "mps-2"}
    assert value_at(values(plan, PLUGIN), "config.default") == "default"
    resources = [{"name": "nvidia.com/gpu", "replicas": 4}]
    halves = [{"name": "nvidia.com/gpu", "replicas": 2}]
    assert configs(plan) == {
        "default": {"version": "v1"},
        "mps-2": {"version": "v1", "sharing": {"mps": {"resources": halves}}},
        "time-slicing-4": {"version": "v1", "sharing": {"timeSlicing": {"resources": resources}}},
    }


def test_the_strategy_of_mig_comes_from_the_layouts() -> None:
    keys = {"gpu-1": MIXED, "gpu-2": {**SEVENTHS, "gpu_mig_strategy": "single"}}
    plan = shared(keys)
    assert labels(plan) == {"gpu-1": "mig-mixed", "gpu-2": "mig-single"}
    assert configs(plan)["mig-mixed"] == {"version": "v1", "flags": {"migStrategy": "mixed"}}
    assert configs(plan)["mig-single"] == {"version": "v1", "flags": {"migStrategy": "single"}}
    assert "migStrategy" not in values(plan, PLUGIN), "it overrides the configurations"
    single = shared({"gpu-1": SEVENTHS}, device_plugin_mig_strategy="single")
    assert labels(single) == {"gpu-1": "mig-single"}
    assert configs(single)["default"]["flags"] == {"migStrategy": "single"}


def test_mig_devices_are_shared_by_time_slicing() -> None:
    plan = shared({"gpu-1": {**MIXED, **SLICED}})
    assert labels(plan) == {"gpu-1": "mig-mixed-time-slicing-4"}
    found = configs(plan)["mig-mixed-time-slicing-4"]["sharing"]["timeSlicing"]["resources"]
    assert [one["name"] for one in found] == [
        "nvidia.com/gpu",
        "nvidia.com/mig-1g.10gb",
        "nvidia.com/mig-3g.40gb",
    ]
    assert {one["replicas"] for one in found} == {4}


def test_keys_of_the_cluster_hold_for_nodes_without_keys() -> None:
    plan = shared({"gpu-1": {"gpu_sharing": "none"}}, device_plugin_time_slicing=4)
    assert labels(plan) == {"gpu-1": "whole"}
    assert value_at(values(plan, PLUGIN), "config.default") == "shared"
    assert "sharing" in configs(plan)["shared"]
    assert "sharing" not in configs(plan)["whole"]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (SLICED, "nvidia.com/gpu 8 -> 32"),
        ({"gpu_mig": "3g.40gb:2"}, "nvidia.com/gpu 8 -> 0, nvidia.com/mig-3g.40gb 0 -> 16"),
        ({"gpu_mig": {0: "1g.10gb+me:1", "all": "off"}},
         "nvidia.com/gpu 8 -> 7, nvidia.com/mig-1g.10gb.me 0 -> 1"),
        ({**SEVENTHS, "gpu_mig_strategy": "single", **MPS, "gpu_sharing": "time-slicing"},
         "nvidia.com/gpu 8 -> 112"),
    ],
)  # fmt: skip
def test_the_plan_shows_what_nodes_advertise_before_and_after(
    keys: dict[str, Any], text: str
) -> None:
    plan = shared({"gpu-1": keys, "gpu-2": keys})
    (sentence,) = group_changes(plan.config_labels)
    assert sentence.startswith("Share the GPUs of gpu-[1-2] by ")
    assert sentence.endswith(f"({text})")


def test_a_number_of_gpus_that_nobody_counted_is_not_invented() -> None:
    counted = gpu("gpu-1", 7, **{"nvidia.com/mig.strategy": "single"})  # MIG devices
    plan = shared({"gpu-1": SLICED}, counted)
    (sentence,) = group_changes(plan.config_labels)
    assert "->" not in sentence


def test_labels_of_ours_change_and_go_with_the_keys() -> None:
    nodes = [labelled(gpu(f"gpu-{number}"), "time-slicing-4") for number in (1, 2, 3)]
    plan = shared({"gpu-1": SLICED, "gpu-2": MPS}, *nodes)
    found = {change.node: (change.after, change.retires) for change in plan.config_labels}
    assert found == {"gpu-2": ("mps-2", False), "gpu-3": ("", False)}
    plan = shared({"gpu-2": MPS}, *nodes)
    found = {change.node: (change.after, change.retires) for change in plan.config_labels}
    assert found == {"gpu-1": ("", True), "gpu-2": ("mps-2", True), "gpu-3": ("", True)}


WHOLE_AGAIN: dict[str, Any] = {**SLICED, "gpu_mig": "off"}


@pytest.mark.parametrize(
    ("config", "offers", "product"),
    [
        ("mig-mixed", {"nvidia.com/gpu": 7, "nvidia.com/mig-1g.10gb": 7}, "H100"),
        ("mig-mixed-time-slicing-2", {"nvidia.com/mig-1g.10gb": 14}, "H100"),
        ("mig-single", {"nvidia.com/gpu": 7}, "H100-MIG-1g.10gb"),
    ],
)
def test_mig_devices_are_not_offered_as_whole_gpus(
    config: str, offers: dict[str, int], product: str
) -> None:
    """The label stays, and so does the configuration that it names."""
    divided = labelled(gpu("gpu-1", **{"nvidia.com/gpu.product": product}), config)
    divided = replace(divided, allocatable=offers)
    plan = shared({"gpu-1": WHOLE_AGAIN}, divided)
    assert (labels(plan), "GF921" in codes(plan)) == ({}, True)
    assert config in configs(plan)
    off = replace(divided, allocatable={"nvidia.com/gpu": 8, "nvidia.com/mig-1g.10gb": 0})
    off = replace(off, labels={**off.labels, "nvidia.com/gpu.product": "H100"})
    plan = shared({"gpu-1": WHOLE_AGAIN}, off)
    assert (labels(plan), "GF921" in codes(plan)) == ({"gpu-1": "time-slicing-4"}, False)


@pytest.mark.parametrize("keys", [{}, MIXED])
def test_labels_of_mig_follow_keys_that_do_not_turn_it_off(keys: dict[str, Any]) -> None:
    node = labelled(gpu("gpu-1"), "mig-mixed")
    plan = shared({"gpu-1": keys}, replace(node, allocatable={"nvidia.com/mig-1g.10gb": 7}))
    assert labels(plan) == ({} if keys else {"gpu-1": ""})
    assert "GF921" not in codes(plan)
    gone = stack(cluster(node), keys={"gpu-1": keys}, device_plugin_enabled=False)
    assert labels(gone) == {"gpu-1": ""}


def test_the_plugin_keeps_a_configuration_once_it_has_one() -> None:
    """Without one, older charts delete the ServiceAccount of pods that still use it."""
    there = {"config": {"map": {"default": "version: v1", "time-slicing-4": "version: v1"}}}
    release = HelmRelease(PLUGIN, "kube-system", 1, "deployed", PLUGIN, "0.18.0", "", there)
    facts = replace(cluster(), releases=(release,))
    plan = stack(facts, keys={}, device_plugin_enabled=True, cluster_adopt_releases=True)
    assert configs(plan) == {"default": {"version": "v1"}}
    assert value_at(values(plan, PLUGIN), "config.default") == "default"
    assert configs(stack(cluster(), keys={}, device_plugin_enabled=True)) == {}
    own = {"config": {"map": {"mine": "version: v1"}}}
    plan = stack(
        facts, keys={}, device_plugin_enabled=True, cluster_adopt_releases=True,
        device_plugin_values=own,
    )  # fmt: skip
    assert {*configs(plan)} == {"mine"}, "the user's choice stays"


def test_labels_of_others_stay() -> None:
    theirs = labelled(gpu("gpu-1"), "mine", ours=False)
    equal = labelled(gpu("gpu-2"), "time-slicing-4", ours=False)
    plan = shared({"gpu-1": SLICED, "gpu-2": SLICED}, theirs, equal)
    (found,) = [each for each in plan.findings if each.code == "GF974"]
    assert (labels(plan), found.blocks) == ({}, False)
    assert "gpu-1" in found.message
    assert labels(shared({}, theirs, equal)) == {}


def test_without_a_plugin_of_gpufleet_no_label_is_left() -> None:
    node = labelled(gpu("gpu-1"), "time-slicing-4")
    plan = stack(cluster(node), keys={"gpu-1": SLICED}, device_plugin_enabled=False)
    assert labels(plan) == {"gpu-1": ""}
    (found,) = [each for each in plan.findings if each.code == "GF887"]
    assert "gpu_sharing" in found.message


def test_sharing_does_not_change_under_pods_with_gpus() -> None:
    """A pod that has a GPU to itself would get company."""
    nodes = labelled(gpu("gpu-1"), "time-slicing-4"), gpu("gpu-2")
    facts = replace(cluster(*nodes), gpu_pods={"gpu-1": ("team/a", "team/b"), "cpu-1": ("team/c",)})

    pinned = {"device_plugin_enabled": True, "cluster_chart_versions": {PLUGIN: "0.18.1"}}

    def found(keys: dict[str, Any], **data: Any) -> set[str]:
        plan = stack(facts, keys={"gpu-1": keys}, **pinned, **data)
        return {each.code for each in plan.blockers}

    assert found(SLICED) == set()
    assert found(MPS) == found({}) == {"GF976"}
    assert found(MPS, cluster_allow_disruption=True) == set()
    assert found({}, device_plugin_time_slicing=4) == set(), "as the cluster says"
    idle = stack(facts, keys={"gpu-1": SLICED, "gpu-2": MPS}, **pinned)
    assert not idle.blockers


@pytest.mark.parametrize(
    ("there", "keys", "devices", "stopped"),
    [
        ("", {"gpu_mig": "3g.40gb:2"}, 0, False),
        ("", {"gpu_mig": "3g.40gb:2"}, 2, True),
        ("time-slicing-4", {**MIXED, **SLICED}, 0, False),
        ("time-slicing-4", MIXED, 0, True),
        ("mig-mixed", {"gpu_sharing": "none"}, 0, False),
        ("", {**SEVENTHS, "gpu_mig_strategy": "single"}, 0, True),
    ],
)
def test_the_strategy_mixed_changes_nothing_before_there_are_mig_devices(
    there: str, keys: dict[str, Any], devices: int, stopped: bool
) -> None:
    node = labelled(gpu("gpu-1"), there) if there else gpu("gpu-1")
    node = replace(node, allocatable={**node.allocatable, "nvidia.com/mig-3g.40gb": devices})
    facts = replace(cluster(node), gpu_pods={"gpu-1": ("team/a",)})
    plan = stack(facts, keys={"gpu-1": keys}, device_plugin_enabled=True)
    assert {each.code for each in plan.blockers} == ({"GF976"} if stopped else set())


def test_a_label_waits_for_the_configurations_that_flux_installs() -> None:
    keeper = Keeper("Flux", "HelmRelease", "flux-system", "gpufleet-nvidia-device-plugin")
    there = {"config": {"map": {"default": "version: v1\n"}}}
    release = HelmRelease(
        PLUGIN, "kube-system", 1, "deployed", PLUGIN, "0.20.0", "", there, keeper=keeper
    )
    keys = {"gpu-1": SLICED}
    early = stack(replace(cluster(), releases=(release,)), keys=keys, device_plugin_enabled=True)
    assert labels(early) == {}
    release = replace(release, values=values(early, PLUGIN))
    late = stack(replace(cluster(), releases=(release,)), keys=keys, device_plugin_enabled=True)
    assert labels(late) == {"gpu-1": "time-slicing-4"}


def test_only_a_host_of_that_name_gives_its_keys() -> None:
    assert labels(shared({"gpu-1.a.example": SLICED})) == {"gpu-1": "time-slicing-4"}
    assert labels(shared({"gpu-1.a.example": SLICED, "gpu-1.b.example": MPS})) == {}
    assert labels(shared({"gpu-9": SLICED})) == {}


@pytest.mark.parametrize(
    "keys",
    [
        {"gpu_sharing": "mps"},
        {"gpu_replicas": 4},
        {"gpu_sharing": "none", "gpu_replicas": 4},
        {"gpu_sharing": "time-slicing", "gpu_replicas": 1},
        {**MPS, "gpu_replicas": 49},
        {**MPS, **SEVENTHS},
        {**MPS, "gpu_compute_mode": "exclusive-process"},
        {**MIXED, "gpu_mig_strategy": "single"},
    ],
)
def test_keys_that_contradict_each_other_stop_the_cluster(keys: dict[str, Any]) -> None:
    plan = shared({"gpu-1": keys})
    assert {found.code for found in plan.blockers} == {"GF975"}
    assert "gpu-1" in plan.blockers[0].message
    elsewhere = shared({"gpu-9": keys})
    assert not elsewhere.blockers, "a node of another cluster"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"cluster_chart_versions": {PLUGIN: "0.14.5"}}, "with nvidia-device-plugin 0.14.5"),
        ({"cluster_chart_versions": {PLUGIN: "0.20.0"}}, "with nvidia-device-plugin 0.20.0"),
        ({"device_plugin_gfd": False}, "mps.capable"),
        ({"device_plugin_nfd": False}, "mps.capable"),
        ({"device_plugin_label_nodes": True}, "mps.capable"),
    ],
)
def test_mps_needs_its_control_daemon(data: dict[str, Any], why: str) -> None:
    assert why in refusal(shared({"gpu-1": MPS}, **data))
    assert not shared({"gpu-1": SLICED}, **data).blockers


def test_gpus_before_turing_have_fewer_clients() -> None:
    compute = {"nvidia.com/gpu.compute.major": "7", "nvidia.com/gpu.compute.minor": "0"}
    volta, newer = gpu("gpu-1", **compute), gpu("gpu-2")
    many = {**MPS, "gpu_replicas": 17}
    message = refusal(shared({"gpu-1": many, "gpu-2": many}, volta, newer))
    assert "gpu-1" in message
    assert "gpu-2" not in message
    assert not shared({"gpu-1": MPS}, volta).blockers


def test_one_strategy_for_all_profiles_of_a_node() -> None:
    plan = shared({"gpu-1": MIXED}, device_plugin_mig_strategy="single")
    assert "one profile" in refusal(plan)


@pytest.mark.parametrize(
    "own",
    [
        {"config": {"name": "mine"}},
        {"config": {"default": "mine"}},
        {"migStrategy": "mixed"},
        {"gfd": {"enabled": False}},
    ],
)
def test_values_of_the_user_that_prevent_it_are_blockers(own: dict[str, Any]) -> None:
    plan = shared({"gpu-1": MPS}, device_plugin_values=own)
    assert plan.blockers
    assert not shared({}, device_plugin_values=own).blockers


def test_a_layout_alone_leaves_the_plugin_to_the_user() -> None:
    """The layout is the host's, and the user may share the devices in another way."""
    own = {"config": {"default": "mine", "map": {"mine": "version: v1"}}}
    plan = shared({"gpu-1": MIXED}, device_plugin_values=own)
    assert (labels(plan), list(plan.blockers)) == ({}, [])
    operator = operated({"gpu-1": MIXED}, gpu_operator_values={"mig": {"strategy": "single"}})
    assert (labels(operator), list(operator.blockers)) == ({}, [])
    there = stack(cluster(), keys={"gpu-1": MIXED}, device_plugin_enabled=False)
    assert "GF887" not in codes(there), "gpu_mig has an effect on the host"


def test_configurations_of_the_user_stay_beside_ours() -> None:
    plan = shared(
        {"gpu-1": SLICED}, device_plugin_values={"config": {"map": {"mine": "version: v1"}}}
    )
    assert {*configs(plan)} == {"default", "mine", "time-slicing-4"}


def operated(keys: Mapping[str, Mapping[str, Any]], **data: Any) -> StackPlan:
    bare = replace(gpu("gpu-1"), allocatable={}), replace(gpu("gpu-2"), allocatable={})
    versions = {"cluster_chart_versions": {OPERATOR: "v25.10.1"}}
    return stack(cluster(*bare), keys=keys, cluster_stack=OPERATOR, **{**versions, **data})


def test_the_operator_gets_the_same_configurations() -> None:
    plan = operated({"gpu-1": MPS, "gpu-2": MIXED})
    config = value_at(values(plan, OPERATOR), "devicePlugin.config")
    assert {*config["data"]} == {"default", "mig-mixed", "mps-2"}
    assert (config["create"], config["default"]) == (True, "default")
    assert value_at(values(plan, OPERATOR), "mig.strategy") == "mixed"
    assert labels(plan) == {"gpu-1": "mps-2", "gpu-2": "mig-mixed"}
    assert not plan.blockers


def test_the_operator_has_one_strategy() -> None:
    keys = {"gpu-1": MIXED, "gpu-2": {**SEVENTHS, "gpu_mig_strategy": "single"}}
    assert "mixed and single" in refusal(operated(keys))


def test_exporters_measure_shares_by_pod() -> None:
    plan = shared({"gpu-1": SLICED})
    names = [one["name"] for one in values(plan, "dcgm-exporter")["extraEnv"]]
    assert names == ["KUBERNETES_VIRTUAL_GPUS"]
