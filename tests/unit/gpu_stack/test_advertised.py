"""Nodes that advertise GPUs although no pod of a device plugin is seen on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.core.merge import value_at
from gpufleet.gpu_stack.model import StackPlan
from gpufleet.kube.facts import ClusterFacts, ClusterNode, ClusterPolicy, ReleaseRef
from tests.unit.gpu_stack.gpu_clusters import FACTS, LABEL, codes, names, stack, values

PLUGIN = "nvidia-device-plugin"
OPERATOR = {"cluster_stack": "gpu-operator"}


def gpu(name: str, count: int = 0, resource: str = "nvidia.com/gpu", **state: Any) -> ClusterNode:
    return ClusterNode(name, LABEL, (), {resource: count or 8}, {resource: count}, **state)


def cluster(*nodes: ClusterNode) -> ClusterFacts:
    return replace(FACTS, nodes=nodes)


def switch(plan: StackPlan) -> Any:
    return value_at(values(plan, "gpu-operator"), "devicePlugin.enabled")


def test_nodes_without_a_plugin_are_named_beside_one_that_has_it() -> None:
    """Two plugins would break gpu-1. Without the finding, gpu-2 and gpu-3 would never work."""
    facts = cluster(gpu("gpu-1", 8), gpu("gpu-2"), gpu("gpu-3"))
    plan = stack(facts)
    (finding,) = plan.findings
    assert (PLUGIN in names(plan), finding.code) == (False, "GF871")
    assert finding.severity.value == "warning"
    assert "on node gpu-1," in finding.message
    assert "Without a plugin: gpu-2, gpu-3." in finding.message
    limited = {"nodeSelector": {"device-plugin": "gpufleet"}}
    assert "nodeSelector with device-plugin: gpufleet" in finding.remedy
    on = stack(facts, device_plugin_enabled=True, device_plugin_values=limited)
    assert (values(on, PLUGIN)["nodeSelector"], codes(on)) == (limited["nodeSelector"], {"GF914"})
    operator = stack(facts, **OPERATOR)
    (finding,) = operator.findings
    assert (switch(operator), finding.severity.value) == (False, "warning")
    assert "nvidia.com/gpu.deploy.device-plugin=false" in finding.remedy


@pytest.mark.parametrize(
    "state", [{"down": "not Ready: Kubelet stopped posting node status."}, {"foreign": "virtual"}]
)
def test_a_node_without_running_pods_of_a_plugin_shows_none(state: dict[str, str]) -> None:
    plan = stack(cluster(gpu("gpu-1", 8, **state), gpu("gpu-2")))
    assert (PLUGIN in names(plan), codes(plan)) == (True, set())
    alone = stack(cluster(gpu("gpu-1", 8, **state)))
    assert (PLUGIN in names(alone), codes(alone)) == (False, {"GF871"})


CLASS = {"nvidia": "nvidia"}
HANDLERS = ("", "runc", "nvidia")


@pytest.mark.parametrize(
    ("classes", "handlers", "found"),
    [
        (CLASS, HANDLERS, set()),
        (CLASS, (), set()),  # an old kubelet does not say
        ({}, ("", "runc"), set()),
        ({"kata": "kata"}, ("", "runc"), set()),
        (CLASS, ("", "runc"), {"GF977"}),
        ({"nvidia": "nvidia-cdi"}, HANDLERS, {"GF977"}),
    ],
)
def test_a_class_whose_handler_a_node_lacks(
    classes: dict[str, str], handlers: tuple[str, ...], found: set[str]
) -> None:
    nodes = (gpu("gpu-1", handlers=HANDLERS), gpu("gpu-2", handlers=handlers))
    plan = stack(replace(cluster(*nodes), runtime_classes=classes))
    assert codes(plan) & {"GF977"} == found
    said = [each.message for each in plan.findings if each.code == "GF977"]
    assert all("gpu-2" in message or "gpu-[1-2]" in message for message in said)


def test_nodes_without_gpus_and_lost_ones_need_no_handler() -> None:
    lost = gpu("gpu-2", handlers=("runc",), down="not Ready: Kubelet stopped")
    cpu = ClusterNode("cpu-1", {}, (), {}, {}, handlers=("runc",))
    nodes = (gpu("gpu-1", handlers=HANDLERS), lost, cpu)
    plan = stack(replace(cluster(*nodes), runtime_classes=CLASS))
    assert "GF977" not in codes(plan)


def test_the_class_of_the_settings_counts() -> None:
    facts = replace(cluster(gpu("gpu-1", handlers=HANDLERS)), runtime_classes={"gpus": "gone"})
    assert "GF977" not in codes(stack(facts))
    assert "GF977" in codes(stack(facts, device_plugin_runtime_class="gpus"))


def test_the_operator_leaves_what_nodes_advertise_as_the_plugin_does() -> None:
    facts = cluster(gpu("gpu-1", 8))
    plan = stack(facts, **OPERATOR)
    assert (switch(plan), codes(plan)) == (False, {"GF871"})
    sliced = stack(facts, device_plugin_time_slicing=4, **OPERATOR)
    assert (switch(sliced), codes(sliced)) == (None, {"GF914"})
    policy = ClusterPolicy("p", "ready", {}, ReleaseRef("gpu-operator", "gpu-operator"))
    own = stack(replace(facts, cluster_policies=(policy,)), **OPERATOR)
    assert (switch(own), codes(own)) == (None, set())


@pytest.mark.parametrize(("enabled", "found"), [(True, {"GF914"}), (False, set())])
def test_a_switch_in_the_operators_values_wins(enabled: bool, found: set[str]) -> None:
    given = {"devicePlugin": {"enabled": enabled}}
    plan = stack(cluster(gpu("gpu-1", 8)), gpu_operator_values=given, **OPERATOR)
    assert (switch(plan), codes(plan)) == (enabled, found)


@pytest.mark.parametrize("resource", ["nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared"])
def test_nodes_with_shares_of_gpus_only_are_gpu_nodes(resource: str) -> None:
    """A node may advertise shares of GPUs without one of the labels."""
    bare = replace(gpu("gpu-1", 7, resource), labels={})
    plan = stack(cluster(bare))
    assert (plan.gpu_nodes, codes(plan)) == (("gpu-1",), {"GF871"})
    operator = stack(cluster(bare), **OPERATOR)
    assert values(operator, "gpu-operator")["driver"]["enabled"] is False, "it has a driver"


@pytest.mark.parametrize(
    "data",
    [
        {"device_plugin_values": {"config": "x"}, "device_plugin_time_slicing": 2},
        {"device_plugin_values": {"config": {"map": ["a"]}}},
        {"device_plugin_values": {"nfd": True}},
        {"monitoring_autoscaling": True,
         "monitoring_adapter_values": {"rules": [], "prometheus": "http://x"}},
        {"monitoring_values": {"grafana": {"admin": "x"}, "prometheusOperator": "x"}},
        {**OPERATOR, "gpu_operator_values": {"dcgmExporter": "x", "clusterPolicy": "x",
                                             "nfd": True, "devicePlugin": True}},
        {**OPERATOR, "device_plugin_time_slicing": 2,
         "gpu_operator_values": {"dcgmExporter": {"env": "x"}, "devicePlugin": {"config": "x"}}},
    ],
)  # fmt: skip
def test_values_of_a_wrong_kind_reach_helm_as_they_are(data: dict[str, Any]) -> None:
    key = next(name for name in data if name.endswith("_values"))
    chart = {"device_plugin_values": PLUGIN, "monitoring_adapter_values": "prometheus-adapter",
             "monitoring_values": "kube-prometheus-stack",
             "gpu_operator_values": "gpu-operator"}[key]  # fmt: skip
    given = values(stack(**data), chart)
    for name, value in data[key].items():
        assert value_at(given, name) == value or isinstance(value, dict | list)
