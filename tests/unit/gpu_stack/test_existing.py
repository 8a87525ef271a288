"""Workloads of other users are recognised by their function, left alone, and not doubled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.gpu_stack.model import StackPlan
from gpufleet.kube.facts import (
    ClusterFacts,
    ClusterNode,
    ClusterPolicy,
    ObjectRef,
    ReleaseRef,
    Workload,
)
from tests.unit.gpu_stack.gpu_clusters import (
    FACTS,
    LABEL,
    OURS,
    codes,
    named,
    names,
    prometheus,
    released,
    stack,
    work,
)

pytestmark = pytest.mark.claim(
    "Plugins, exporters and Prometheus installations of others are recognised by what they do.",
    level=1,
)

PLUGIN, EXPORTER, NFD = "nvidia-device-plugin", "dcgm-exporter", "node-feature-discovery"
SPACES = {PLUGIN: "kube-system", EXPORTER: "monitoring", NFD: NFD}
SOCKETS = "/var/lib/kubelet/device-plugins"


def daemon(image: str, *paths: str, name: str = "theirs", **more: Any) -> Workload:
    """A DaemonSet of another team; `paths`: the host paths that it mounts."""
    made = work(name, "x", ports=more.pop("ports", ()))
    return replace(made, images=(image,), host_paths=paths, **more)


def beside(*works: Workload, **data: Any) -> StackPlan:
    return stack(replace(FACTS, workloads=works), **data)


def offering(resource: str) -> ClusterFacts:
    """A cluster with nodes that advertise a resource, although no plugin is seen."""
    return replace(
        FACTS, nodes=(ClusterNode("gpu-1", LABEL, (), {resource: 8}, {resource: 8}), FACTS.nodes[0])
    )


# https://github.com/NVIDIA/k8s-device-plugin/issues/255 (2021-06-11)
# https://github.com/NVIDIA/aicr/pull/1998 (2026-08-03), GKE
# https://github.com/Project-HAMi/HAMi/issues/2076 (2026-07-16)
# https://github.com/AliyunContainerService/gpushare-scheduler-extender/issues/47 (2019-07-24)
# https://github.com/tkestack/gpu-manager/issues/123 (2021-09-14)
PLUGINS = [  # image, folder of the kubelet's sockets
    ("nvcr.io/nvidia/k8s-device-plugin:v0.17.1", SOCKETS),
    ("registry.example:5000/mirror/k8s-device-plugin:v0.17.1-amd64", f"{SOCKETS}/"),
    ("gke.gcr.io/nvidia-gpu-device-plugin@sha256:00aa", SOCKETS),
    ("projecthami/hami:v2.6.0", SOCKETS),
    ("volcanosh/volcano-vgpu-device-plugin:v1.9.0", "/var/lib/kubelet"),
    ("registry.example/acs/k8s-gpushare-plugin:v2", "/var/lib/k0s/kubelet/device-plugins"),
    ("tkestack/gpu-manager:v1.1.4", SOCKETS),
]


@pytest.mark.parametrize(("image", "folder"), PLUGINS)
def test_a_device_plugin_is_recognised_by_the_folder_where_it_registers(
    image: str, folder: str
) -> None:
    there = daemon(image, folder)
    plan = beside(there)
    assert PLUGIN not in names(plan)
    assert {EXPORTER, NFD, "kube-prometheus-stack"} <= set(names(plan))
    (finding,) = plan.findings
    assert (finding.code, finding.blocks) == ("GF871", False)
    assert "device_plugin_enabled = False" in finding.remedy
    assert PLUGIN in names(beside(replace(there, host_paths=("/var/log",))))


# https://github.com/ROCm/k8s-device-plugin/issues/57 (2024-04-04)
# https://github.com/Mellanox/network-operator/pull/126 (2021-03-01)
# https://github.com/NVIDIA/kubevirt-gpu-device-plugin/issues/16 (2021-02-02)
OTHER_DEVICES = [
    ("rocm/k8s-device-plugin:1.31", "amdgpu-device-plugin-daemonset"),
    ("intel/intel-gpu-plugin:0.32", "intel-gpu-plugin"),
    ("nvcr.io/nvidia/mellanox/k8s-rdma-shared-dev-plugin:v1.5", "rdma-shared-dp-ds"),
    ("nvcr.io/nvidia/mellanox/sriov-network-device-plugin:v3", "nvidia-network-sriov"),
    ("nvcr.io/nvidia/kubevirt-gpu-device-plugin:v1.4", "nvidia-kubevirt-gpu"),
    ("registry.example/smarter-device-manager:1.20", "smarter"),
]


@pytest.mark.parametrize(("image", "name"), OTHER_DEVICES)
def test_a_plugin_of_other_devices_is_no_obstacle(image: str, name: str) -> None:
    plan = beside(daemon(image, SOCKETS, name=name))
    assert (PLUGIN in names(plan), codes(plan)) == (True, set())


@pytest.mark.parametrize("resource", ["gpu", "gpu.shared", "mig-1g.10gb"])
def test_nodes_that_advertise_gpus_without_ours_have_a_plugin(resource: str) -> None:
    facts = offering(f"nvidia.com/{resource}")
    plan = stack(facts)
    assert (PLUGIN in names(plan), codes(plan)) == (False, {"GF871"})
    assert "on node gpu-1" in plan.findings[0].message
    off = stack(facts, device_plugin_enabled=False)
    assert (PLUGIN in names(off), codes(off)) == (False, set())
    on = stack(facts, device_plugin_enabled=True)
    assert (PLUGIN in names(on), codes(on)) == (True, {"GF914"})
    ours = replace(facts, releases=(named(PLUGIN, "kube-system", OURS),))
    assert (PLUGIN in names(stack(ours)), codes(stack(ours))) == (True, set())


def test_resources_of_networks_are_no_gpus() -> None:
    assert PLUGIN in names(stack(offering("nvidia.com/hostdev")))


def test_settings_of_our_plugin_are_obeyed_or_reported() -> None:
    """Such settings overrule advertised GPUs, but not a device plugin in the cluster."""
    plan = stack(offering("nvidia.com/gpu"), device_plugin_time_slicing=4)
    assert (PLUGIN in names(plan), codes(plan)) == (True, {"GF914"})
    seen = beside(daemon(*PLUGINS[0]), device_plugin_time_slicing=4)
    assert (PLUGIN in names(seen), codes(seen)) == (False, {"GF871", "GF887"})
    off = stack(device_plugin_enabled=False, device_plugin_values={"a": 1})
    assert (PLUGIN in names(off), codes(off)) == (False, {"GF887"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("monitoring_values", {"grafana": {"enabled": False}}),
        ("monitoring_alert_receivers", "oncall"),
        ("monitoring_node_port", 30090),
        ("monitoring_grafana_node_port", 30091),
        ("monitoring_grafana_existing_secret", "login"),
        ("monitoring_admission_webhooks", True),
    ],
)
def test_settings_of_our_prometheus_are_obeyed_or_reported(key: str, value: Any) -> None:
    without = stack(monitoring_prometheus="none", **{key: value})
    (found,) = [each for each in without.findings if each.code == "GF887"]
    assert key in found.message
    for plan in (stack(**{key: value}), stack(monitoring_prometheus="none")):
        assert "GF887" not in codes(plan)


def test_an_explicit_setting_wins() -> None:
    plugin, exporter = daemon(*PLUGINS[0]), daemon("x/dcgm-exporter:1", "/var/lib/kubelet/x")
    nfd = daemon("nfd/node-feature-discovery:v1", "/sys")
    keys = {"device_plugin_enabled": PLUGIN, "monitoring_exporter": EXPORTER,
            "device_plugin_nfd": NFD}  # fmt: skip
    for there, (key, chart) in zip((plugin, exporter, nfd), keys.items(), strict=True):
        asked: dict[str, Any] = {key: True}
        on = beside(there, **asked)
        assert (chart in names(on), codes(on)) == (True, {"GF914"})
        assert f"{key} = False" in on.findings[0].remedy
        off = beside(there, **{**asked, key: False})
        assert (chart in names(off), codes(off)) == (False, set())


@pytest.mark.parametrize("chart", [PLUGIN, EXPORTER, NFD])
def test_what_is_ours_stays_when_others_come(chart: str) -> None:
    others = {PLUGIN: daemon(*PLUGINS[0]), EXPORTER: daemon("x/dcgm-exporter:1", "/x"),
              NFD: daemon("nfd/node-feature-discovery:v1", "/sys")}  # fmt: skip
    facts = replace(FACTS, releases=(named(chart, SPACES[chart], OURS),))
    plan = stack(replace(facts, workloads=(others[chart],)))
    assert (chart in names(plan), codes(plan)) == (True, {"GF914"})


@pytest.mark.parametrize("image", ["dcgm-exporter", "starship"])
def test_with_another_exporter_none_is_installed(image: str) -> None:
    plan = beside(work("theirs", image))
    assert EXPORTER not in names(plan)
    assert codes(plan) == {"GF872"}
    ours = replace(work(EXPORTER, image, ports=(9400,)), namespace="monitoring")
    assert EXPORTER in names(stack(released(ours, EXPORTER)))


def test_who_has_the_port_collects_too() -> None:
    assert codes(beside(work("renamed", "anything", ports=(9400,)))) == {"GF872"}


ENGINE = daemon("eks/observability/dcgm-exporter:3.3.7-3.5.0-ubuntu22.04", name="dcgm-server",
                ports=(5555,))  # fmt: skip


@pytest.mark.parametrize("engine", [ENGINE, daemon("nvcr.io/nvidia/cloud-native/dcgm:4.2", "/run")])
def test_a_host_engine_is_no_exporter(engine: Workload) -> None:
    plan = beside(engine)
    assert EXPORTER in names(plan)
    (finding,) = plan.findings
    assert (finding.code, finding.severity.value) == ("GF917", "warning")
    assert codes(beside(engine, monitoring_exporter=False)) == set()
    assert codes(beside(replace(engine, wanted=0))) == set()


def test_a_host_engine_that_also_serves_metrics_is_an_exporter() -> None:
    assert codes(beside(replace(ENGINE, ports=(5555, 9400)))) == {"GF872"}


def test_a_workload_without_pods_does_nothing() -> None:
    idle = [replace(work("theirs", image), wanted=0) for image in (
        "dcgm-exporter", "k8s-device-plugin", "node-feature-discovery")]  # fmt: skip
    assert codes(beside(*idle)) == set()
    empty = replace(FACTS, nodes=FACTS.nodes[:1], workloads=tuple(idle))
    assert codes(stack(empty)) == {"GF871", "GF872", "GF873", "GF878"}, "no GPU node yet"


def test_one_nfd_is_enough() -> None:
    plan = beside(work("nfd-worker", "node-feature-discovery-rhel9"))
    assert NFD not in names(plan)
    assert codes(plan) == {"GF878"}
    assert NFD not in names(stack(device_plugin_nfd=False))


NFD_IN_PLUGIN = {"device_plugin_values": {"nfd": {"enabled": True}}}


def test_the_nfd_of_the_plugins_chart_replaces_ours() -> None:
    plan = stack(**NFD_IN_PLUGIN)
    assert (NFD in names(plan), codes(plan)) == (False, set())
    part = replace(work("p-nfd-worker", "node-feature-discovery"), namespace="kube-system")
    there = released(part, PLUGIN)
    assert codes(stack(there, **NFD_IN_PLUGIN)) == set()
    assert NFD in names(stack(there)), "it goes with the values that enabled it"


def test_two_nfds_are_a_blocker() -> None:
    ours = replace(FACTS, releases=(named(NFD, NFD, OURS),))
    theirs = replace(FACTS, workloads=(work("nfd-worker", "node-feature-discovery"),))
    asked = {**NFD_IN_PLUGIN, "device_plugin_nfd": True}
    for plan in (stack(ours, **NFD_IN_PLUGIN), stack(theirs, **NFD_IN_PLUGIN), stack(**asked)):
        assert [found.code for found in plan.blockers] == ["GF916"]


def unprivileged(name: str, image: str, **more: Any) -> Workload:
    """A workload of a user who may only run pods, under an image name of their choice."""
    return replace(work(name, image, **more), host_paths=())


@pytest.mark.parametrize(
    "image",
    ["k8s-device-plugin", "dcgm-exporter", "node-feature-discovery", "node-problem-detector"],
)
def test_a_pod_with_the_name_of_an_image_keeps_nothing_out(image: str) -> None:
    theirs = replace(FACTS, workloads=(unprivileged("theirs", image),))
    wanted = stack(monitoring_node_problems=True)
    plan = stack(theirs, monitoring_node_problems=True)
    assert (names(plan), codes(plan)) == (names(wanted), set())
    assert codes(stack(theirs, cluster_stack="gpu-operator")) == set()


def test_a_note_of_helm_does_not_make_a_workload_ours() -> None:
    theirs = work("theirs", "k8s-device-plugin", release=PLUGIN)
    noted = replace(theirs, release=ReleaseRef("kube-system", PLUGIN))
    for found in (theirs, noted):
        assert codes(beside(found)) == {"GF871"}
    ours = replace(theirs, namespace="kube-system")
    assert codes(stack(released(ours, PLUGIN))) == set()


def test_a_foreign_operator_has_a_plugin_and_ours_excludes_one() -> None:
    policy = ClusterPolicy("cluster-policy", "ready", {})
    plan = stack(replace(FACTS, cluster_policies=(policy,)))
    assert (PLUGIN in names(plan), codes(plan)) == (False, {"GF871"})
    ours = replace(FACTS, releases=(named("gpu-operator", "gpu-operator", OURS),))
    assert [finding.code for finding in stack(ours).blockers] == ["GF870"]
    assert stack(ours, device_plugin_enabled=False).blockers == ()


def test_of_several_prometheuses_one_that_works_is_used_and_the_others_are_named() -> None:
    facts = prometheus({})
    (main,) = facts.prometheuses
    idle = replace(main, name="a", spec={**main.spec, "replicas": 0})
    broken, other = replace(main, name="b"), replace(main, name="c")
    down = {ObjectRef("Prometheus", "infra", "b"): "Available is False (x)"}
    several = replace(facts, prometheuses=(main, idle, broken, other), operated=down)
    (found,) = (each for each in stack(several).findings if each.code == "GF979")
    assert "Prometheus infra/c is to scrape" in found.message
    assert "infra/main, infra/b." in found.message
    only = replace(facts, prometheuses=(idle,))
    assert "GF979" not in codes(stack(replace(facts, prometheuses=(idle, main))))
    assert "kube-prometheus-stack" in names(stack(only))


def test_no_label_of_nodes_is_expected_where_nothing_sets_one() -> None:
    def labels(**data: Any) -> Any:
        return stack(**data).releases[-1].ready.labels

    assert labels().items() >= LABEL.items()
    assert labels(device_plugin_nfd=False) == {}
    assert labels(device_plugin_nfd=False, device_plugin_label_nodes=True) == labels()
