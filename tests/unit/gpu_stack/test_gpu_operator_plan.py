"""The GPU Operator's release: drivers and toolkits of hosts stay, rivals are blockers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.gpu_stack.model import StackPlan
from gpufleet.kube.facts import ClusterPolicy, HelmRelease, ObjectRef, ReleaseRef, ServerVersion
from gpufleet.kube.helm_releases import ADOPTED_LABEL, OWNER_LABEL
from tests.unit.gpu_stack.gpu_clusters import (
    FACTS,
    LABEL,
    OLD,
    codes,
    names,
    node,
    prometheus,
    stack,
    values,
    work,
)

OURS = ReleaseRef("gpu-operator", "gpu-operator")
LABELS = {OWNER_LABEL: "1234"}
BARE = replace(FACTS, nodes=(node("gpu-1", LABEL), node("gpu-2", LABEL)))  # no driver shows


def operator(facts: Any = FACTS, hosts: tuple[str, ...] = (), **data: Any) -> StackPlan:
    return stack(facts, hosts, **{"cluster_stack": "gpu-operator", **data})


def policy(**spec: Any) -> ClusterPolicy:
    return ClusterPolicy("cluster-policy", "ready", spec, OURS)


def installs(plan: StackPlan) -> tuple[bool, bool]:
    """Whether the operator installs drivers, and whether it installs the toolkit."""
    given = values(plan, "gpu-operator")
    return given["driver"]["enabled"], given["toolkit"]["enabled"]


def pods(plan: StackPlan) -> dict[str, int] | None:
    """The number of pods per DaemonSet, or None if the plan does not wait for an operator."""
    operands = plan.releases[-1].ready.operands
    return {name: len(nodes) for name, nodes in operands.nodes.items()} if operands else None


def release(chart: str, namespace: str) -> HelmRelease:
    return HelmRelease(chart, namespace, 1, "deployed", chart, "1.0.0", "1", {})


def test_drivers_that_nodes_show_stay_theirs() -> None:
    plan = operator()
    assert names(plan) == ["kube-prometheus-stack", "gpu-operator"]
    assert installs(plan) == (False, False)
    assert codes(plan) == set()


def test_without_drivers_the_operator_installs_them_and_reports_it() -> None:
    plan = operator(BARE)
    assert installs(plan) == (True, True)
    assert codes(plan) == {"GF879"}


def test_nodes_of_gpu_node_have_driver_and_toolkit_before_they_show_it() -> None:
    plan = operator(BARE, ("gpu-1", "gpu-2"))
    assert installs(plan) == (False, False)
    assert codes(plan) == set()
    some = operator(BARE, ("gpu-1",))
    assert installs(some) == (False, False)
    (reported,) = some.findings
    assert (reported.code, "gpu-1 have one; gpu-2 have none" in reported.message) == ("GF886", True)


def test_what_the_operator_installed_is_not_taken_for_the_hosts_own() -> None:
    """Nodes show the operator's drivers like those of hosts, but they depend on the operator."""
    theirs = replace(FACTS, cluster_policies=(policy(driver={"enabled": True}),))
    assert installs(operator(theirs)) == (True, True)
    half = policy(driver={"enabled": False}, toolkit={"enabled": True})
    assert installs(operator(replace(BARE, cluster_policies=(half,)))) == (False, True)


@pytest.mark.parametrize("driver", [True, False])
def test_a_switch_in_the_values_counts_as_the_setting(driver: bool) -> None:
    """The user's values decide, so GF879, which reports the default, is not shown."""
    plan = operator(BARE, gpu_operator_values={"driver": {"enabled": driver}})
    assert installs(plan) == (driver, driver)
    assert codes(plan) == set()


@pytest.mark.parametrize("driver", [True, False])
@pytest.mark.parametrize("toolkit", [True, False])
def test_settings_overrule_what_shows(driver: bool, toolkit: bool) -> None:
    plan = operator(BARE, gpu_operator_driver=driver, gpu_operator_toolkit=toolkit)
    assert installs(plan) == (driver, toolkit)
    assert codes(plan) == set()


def test_our_releases_of_plugin_and_exporter_are_blockers() -> None:
    there = (release("nvidia-device-plugin", "kube-system"), release("dcgm-exporter", "monitoring"))
    ours = tuple(replace(found, labels=LABELS) for found in there)
    plan = operator(replace(FACTS, releases=ours))
    assert [found.code for found in plan.blockers] == ["GF884", "GF884"]
    assert all("gpufleet remove INVENTORY" in found.remedy for found in plan.blockers)
    taken = tuple(replace(found, labels={**LABELS, ADOPTED_LABEL: "yes"}) for found in there)
    adopted = operator(replace(FACTS, releases=taken))  # remove leaves it in the cluster
    assert "helm -n monitoring uninstall dcgm-exporter" in adopted.blockers[1].remedy
    theirs = operator(replace(FACTS, releases=there))
    assert (theirs.blockers, codes(theirs)) == ((), {"GF871", "GF872"})
    given = values(theirs, "gpu-operator")
    assert (given["devicePlugin"], given["dcgmExporter"]["enabled"]) == ({"enabled": False}, False)
    assert pods(theirs) == {"nvidia-operator-validator": 2}


@pytest.mark.parametrize("image", ["k8s-device-plugin", "dcgm-exporter"])
def test_what_others_run_is_left_to_them_and_the_operators_own_is_not(image: str) -> None:
    """The component of the operator is disabled, unless its setting enables it."""
    theirs = replace(FACTS, workloads=(work("theirs", image, release="nvdp"),))
    code, key, component = {
        "k8s-device-plugin": ("GF871", "device_plugin_enabled", "devicePlugin"),
        "dcgm-exporter": ("GF872", "monitoring_exporter", "dcgmExporter"),
    }[image]
    left = operator(theirs)
    assert (codes(left), values(left, "gpu-operator")[component]["enabled"]) == ({code}, False)
    off = operator(theirs, **{key: False})
    assert (codes(off), values(off, "gpu-operator")[component]["enabled"]) == (set(), False)
    on = operator(theirs, **{key: True})
    assert codes(on) == {"GF914"}
    assert values(on, "gpu-operator").get(component, {}).get("enabled") is not False
    owner = ObjectRef("ClusterPolicy", "", "cluster-policy")
    own = (replace(work("own", image), owner=owner),)
    plan = operator(replace(FACTS, workloads=own, cluster_policies=(policy(),)))
    assert codes(plan) == set()
    assert values(plan, "gpu-operator")["dcgmExporter"]["enabled"] is True


@pytest.mark.parametrize(
    "data", [{"device_plugin_nfd": True}, {"gpu_operator_values": {"nfd": {"enabled": True}}}]
)
def test_an_nfd_beside_another_one_is_reported(data: dict[str, Any]) -> None:
    """https://github.com/ibm-mas/ansible-devops/pull/2449 (2026-09-09)"""
    theirs = replace(FACTS, workloads=(work("nfd-worker", "ose-node-feature-discovery-rhel9"),))
    assert (codes(operator(theirs)), codes(operator(theirs, **data))) == (set(), {"GF914"})
    assert values(operator(theirs), "gpu-operator")["nfd"] == {"enabled": False}


def test_another_policy_is_a_blocker() -> None:
    other = ClusterPolicy("gpu-cluster-policy", "ready", {}, ReleaseRef("x", "gpu-operator-16"))
    plan = operator(replace(FACTS, cluster_policies=(policy(), other)))
    assert [found.code for found in plan.blockers] == ["GF885"]
    assert "gpu-cluster-policy belongs to release x/gpu-operator-16" in plan.blockers[0].message


def test_with_another_exporter_the_operators_is_disabled() -> None:
    collects = replace(FACTS, workloads=(work("starship", "starship"),))
    plan = operator(collects)
    assert values(plan, "gpu-operator")["dcgmExporter"]["enabled"] is False
    assert codes(plan) == {"GF872"}
    off = values(operator(monitoring_exporter=False), "gpu-operator")
    assert off["dcgmExporter"]["enabled"] is False
    old = operator(replace(collects, server=OLD.server))  # v1.8.2 cannot leave it out
    assert [found.code for found in old.blockers] == ["GF884"]


def test_every_gpu_node_is_waited_for_unless_it_is_left_out() -> None:
    both = {"nvidia-device-plugin-daemonset": 2, "nvidia-operator-validator": 2}
    assert pods(operator()) == both
    off = {"nvidia.com/gpu.deploy.operands": "false"}
    left = replace(FACTS, nodes=(*FACTS.nodes, node("gpu-3", {**LABEL, **off}, 8)))
    assert pods(operator(left)) == both
    without = operator(gpu_operator_values={"devicePlugin": {"enabled": False}})
    assert pods(without) == {"nvidia-operator-validator": 2}
    assert pods(operator(gpu_operator_values={"sandboxWorkloads": {"enabled": True}})) == {}
    assert pods(operator(gpu_operator_values={"clusterPolicy": {"deployCR": False}})) is None


def test_mig_and_time_slicing_reach_the_operator_and_the_rest_is_reported() -> None:
    plan = operator(device_plugin_mig_strategy="mixed", device_plugin_time_slicing=4)
    given = values(plan, "gpu-operator")
    assert given["mig"] == {"strategy": "mixed"}
    assert "replicas: 4" in given["devicePlugin"]["config"]["data"]["shared"]
    reported = operator(device_plugin_runtime_class="nvidia", monitoring_exporter_memory="2Gi")
    (finding,) = reported.findings
    assert "device_plugin_runtime_class, monitoring_exporter_memory" in finding.message
    old = operator(OLD, device_plugin_time_slicing=4)
    assert codes(old) == {"GF887"}
    assert "devicePlugin" not in values(old, "gpu-operator")


@pytest.mark.parametrize("minor", [18, 20])
def test_an_operator_without_a_service_monitor_is_scraped_by_a_job(minor: int) -> None:
    """https://github.com/NVIDIA/gpu-operator/issues/305"""
    facts = replace(FACTS, server=ServerVersion(1, minor, f"v1.{minor}.0"))
    plan = operator(facts)
    spec = values(plan, "kube-prometheus-stack")["prometheus"]["prometheusSpec"]
    [job] = spec["additionalScrapeConfigs"]
    assert job["job_name"] == "gpu-metrics"
    assert "serviceMonitor" not in values(plan, "gpu-operator").get("dcgmExporter", {})


def test_such_an_operator_beside_a_prometheus_of_others_is_a_finding() -> None:
    there = prometheus({})
    assert "GF913" not in codes(operator(there))
    old = replace(there, server=ServerVersion(1, 20, "v1.20.0"))
    assert "GF913" in codes(operator(old))
    assert "GF913" not in codes(operator(old, monitoring_enabled=False))


@pytest.mark.parametrize("minor", [21, 36])
def test_the_operators_metrics_name_the_node(minor: int) -> None:
    """https://github.com/NVIDIA/gpu-operator/issues/472"""
    facts = replace(FACTS, server=ServerVersion(1, minor, f"v1.{minor}.0"))
    monitor = values(operator(facts), "gpu-operator")["dcgmExporter"]["serviceMonitor"]
    wanted = {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}
    assert monitor["relabelings"] == [wanted]


def test_pods_that_share_gpus_are_measured() -> None:
    new = operator(device_plugin_time_slicing=4)
    exporter = values(new, "gpu-operator")["dcgmExporter"]
    assert exporter["env"] == [{"name": "KUBERNETES_VIRTUAL_GPUS", "value": "true"}]
    old = replace(FACTS, server=ServerVersion(1, 24, "v1.24.0"))
    unaware = operator(old, device_plugin_time_slicing=4)
    assert "GF912" in codes(unaware)
    assert "env" not in values(unaware, "gpu-operator")["dcgmExporter"]
