"""The releases of a cluster: their order and their values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State

from gpufleet.exporter.counters import fields_of
from gpufleet.gpu_stack.model import node_names, our_releases
from gpufleet.gpu_stack.operations import stack as operations
from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.kube.facts import (
    ClusterFacts,
    Crd,
    Placement,
    ServerVersion,
    Taint,
)
from gpufleet.kube.node_answers import load_node_kinds
from gpufleet.kube.scheduling import why_not
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
)


def test_prometheus_has_the_crds_so_it_comes_first() -> None:
    plan = stack()
    assert names(plan) == [
        "kube-prometheus-stack", "node-feature-discovery", "nvidia-device-plugin", "dcgm-exporter",
    ]  # fmt: skip
    assert codes(plan) == set()
    assert plan.gpu_nodes == ("gpu-1", "gpu-2")
    assert plan.secret == ("monitoring", "gpufleet-grafana")


def test_a_daemonset_has_to_be_on_every_gpu_node() -> None:
    ready = {release.name: release.ready.nodes for release in stack().releases}
    assert ready["dcgm-exporter"] == {"dcgm-exporter": ("gpu-1", "gpu-2")}
    assert ready["nvidia-device-plugin"] == {
        "nvidia-device-plugin": ("gpu-1", "gpu-2"),
        "nvidia-device-plugin-mps-control-daemon": (),
    }


@pytest.mark.parametrize(("facts", "version"), [(FACTS, "88.5.3"), (OLD, "45.10.1")])
def test_versions_are_those_of_the_catalog(facts: ClusterFacts, version: str) -> None:
    assert stack(facts).releases[0].version == version


def test_prometheus_takes_monitors_of_everybody_and_ports_only_when_asked() -> None:
    plain = values(stack(), "kube-prometheus-stack")
    spec = plain["prometheus"]["prometheusSpec"]
    assert spec["serviceMonitorSelectorNilUsesHelmValues"] is False
    assert "service" not in plain["prometheus"]
    assert "additionalScrapeConfigs" not in spec
    asked = values(
        stack(monitoring_node_port=30090, monitoring_grafana_node_port=32322),
        "kube-prometheus-stack",
    )
    assert asked["prometheus"]["service"] == {"type": "NodePort", "nodePort": 30090}
    assert asked["grafana"]["service"]["nodePort"] == 32322


def test_there_is_no_password_in_the_values() -> None:
    admin = values(stack(), "kube-prometheus-stack")["grafana"]["admin"]
    assert admin["existingSecret"] == "gpufleet-grafana"
    plan = stack(monitoring_grafana_existing_secret="mine")
    assert values(plan, "kube-prometheus-stack")["grafana"]["admin"]["existingSecret"] == "mine"
    assert plan.secret is None


@pytest.mark.parametrize(
    "variable",
    [
        "GF_SECURITY_ADMIN_PASSWORD",
        "GF_SECURITY_ADMIN_PASSWORD__FILE",
        "GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION",
    ],
)
def test_a_password_by_a_variable_of_grafana_needs_no_secret_of_ours(variable: str) -> None:
    plan = stack(monitoring_values={"grafana": {"env": {variable: "/etc/secrets/password"}}})
    assert "admin" not in values(plan, "kube-prometheus-stack")["grafana"]
    assert plan.secret is None


def test_a_password_in_the_values_takes_precedence() -> None:
    plan = stack(monitoring_values={"grafana": {"adminPassword": "chosen"}})
    assert "admin" not in values(plan, "kube-prometheus-stack")["grafana"]
    assert plan.secret is None
    admin = {"existingSecret": "mine", "userKey": "user", "passwordKey": "password"}
    plan = stack(monitoring_values={"grafana": {"admin": admin}})
    assert values(plan, "kube-prometheus-stack")["grafana"]["admin"] == admin
    assert plan.secret is None


def test_an_empty_secret_in_a_copied_file_does_not_replace_ours() -> None:
    """The chart would fall back to its default password, which is public."""
    plan = stack(monitoring_values={"grafana": {"admin": {"existingSecret": ""}}})
    admin = values(plan, "kube-prometheus-stack")["grafana"]["admin"]
    assert admin["existingSecret"] == "gpufleet-grafana"
    assert plan.secret == ("monitoring", "gpufleet-grafana")


def test_a_secret_is_made_only_for_a_grafana_that_uses_it() -> None:
    assert stack(monitoring_values={"grafana": {"enabled": False}}).secret is None
    assert stack(monitoring_values={"grafana": {"enabled": False}}).dashboards.objects == ()
    moved = stack(monitoring_values={"grafana": {"namespaceOverride": "ui", "adminUser": "root"}})
    assert moved.secret == ("ui", "gpufleet-grafana")
    assert (moved.grafana_user, stack().grafana_user) == ("root", "admin")


def test_dashboards_follow_the_values_of_the_sidecar() -> None:
    sidecar = {"label": "dash", "labelValue": "yes", "folderAnnotation": "folder"}
    plan = stack(monitoring_values={"grafana": {"sidecar": {"dashboards": sidecar}}})
    metadata = plan.dashboards.objects[0]["metadata"]
    assert metadata["labels"] == {"dash": "yes"}
    assert metadata["annotations"] == {"folder": "GPU"}


def test_a_monitor_is_made_for_other_programs_that_read_it() -> None:
    data = {"monitoring_prometheus": "none", "monitoring_scrape": "service-monitor"}
    crd = Crd("servicemonitors.monitoring.coreos.com", "ServiceMonitor", ("v1",), {})
    plan = stack(replace(FACTS, crds={crd.name: crd}), **data)
    assert values(plan, "dcgm-exporter")["serviceMonitor"]["enabled"] is True
    assert codes(plan) == set()


@pytest.mark.parametrize(("facts", "role"), [(FACTS, "endpointslice"), (OLD, "endpoints")])
def test_without_monitors_prometheus_finds_the_exporter_by_a_job(
    facts: ClusterFacts, role: str
) -> None:
    plan = stack(facts, monitoring_scrape="scrape-config")
    spec = values(plan, "kube-prometheus-stack")["prometheus"]["prometheusSpec"]
    (job,) = spec["additionalScrapeConfigs"]
    assert job["job_name"] == "gpu-metrics"
    assert job["kubernetes_sd_configs"] == [{"role": role}]
    assert values(plan, "dcgm-exporter")["serviceMonitor"]["enabled"] is False


def test_a_prometheus_that_is_there_is_joined_with_the_labels_it_selects() -> None:
    plan = stack(prometheus({"matchLabels": {"release": "infra"}}))
    assert "kube-prometheus-stack" not in names(plan)
    monitor = values(plan, "dcgm-exporter")["serviceMonitor"]
    assert monitor["additionalLabels"] == {"release": "infra"}
    assert codes(plan) == set()
    wrong = stack(
        prometheus({"matchLabels": {"release": "infra"}}), monitoring_monitor_labels={"team": "ml"}
    )
    assert codes(wrong) == {"GF876"}
    assert codes(stack(prometheus(None))) == {"GF876"}


def test_a_monitor_needs_its_kind() -> None:
    plan = stack(monitoring_prometheus="none", monitoring_scrape="service-monitor")
    assert [finding.code for finding in plan.blockers] == ["GF874"]
    assert [f.code for f in stack(monitoring_prometheus="existing").blockers] == ["GF874"]


def test_the_exporter_gets_memory_by_gpus() -> None:
    def limit(gpus: int) -> str:
        facts = replace(FACTS, nodes=(node("gpu-1", LABEL, gpus),))
        return str(values(stack(facts), "dcgm-exporter")["resources"]["limits"]["memory"])

    assert [limit(gpus) for gpus in (1, 4, 8)] == ["512Mi", "512Mi", "1Gi"]
    plan = stack(monitoring_exporter_memory="2Gi")
    assert values(plan, "dcgm-exporter")["resources"]["limits"]["memory"] == "2Gi"


def test_every_release_of_a_plan_is_one_that_facts_are_gathered_of() -> None:
    data = {
        "monitoring_autoscaling": True,
        "monitoring_node_problems": True,
        "monitoring_namespace": "watch",
        "device_plugin_namespace": "gpus",
        "device_plugin_nfd_namespace": "labels",
        "device_plugin_dra_namespace": "claims",
        "gpu_operator_namespace": "operator",
    }
    settings, _ = load_cluster_settings(data)
    assert settings
    known = set(our_releases(settings))
    claimed = {"gpu-1": {"gpu_sharing": "dra"}}
    plans = [stack(keys=claimed, **data), stack(cluster_stack="gpu-operator", **data)]
    assert {release.ref for plan in plans for release in plan.releases} == known


def test_nodes_are_labelled_where_nfd_is_not_wanted() -> None:
    bare = replace(FACTS, nodes=(node("cpu-1"), node("gpu-1"), node("gpu-2", LABEL)))
    plan = stack(bare, ("gpu-1", "not-a-node"), device_plugin_label_nodes=True)
    assert plan.label_nodes == ("gpu-1",)
    assert plan.gpu_nodes == ("gpu-2", "gpu-1")
    assert "node-feature-discovery" not in names(plan)


def test_a_cluster_without_known_gpus_is_reported() -> None:
    plan = stack(replace(FACTS, nodes=(node("cpu-1"),)))
    assert codes(plan) == {"GF873"}
    (finding,) = [each for each in plan.findings if each.code == "GF873"]
    assert finding.remedy.startswith("NFD labels them once it runs")
    for own in ({"device_plugin_nfd": False}, {"device_plugin_label_nodes": True}):
        plain = stack(replace(FACTS, nodes=(node("cpu-1"),)), **own)
        (finding,) = [each for each in plain.findings if each.code == "GF873"]
        assert finding.remedy.startswith("Name them in the inventory's group gpu_nodes")
    assert not any(any(release.ready.nodes.values()) for release in plan.releases)


@pytest.mark.parametrize(
    "taint",
    [
        Taint("sku", "NoSchedule", "gpu"),
        Taint("nvidia.com/gpu", "NoSchedule", "true"),
        Taint("kubernetes.azure.com/scalesetpriority", "NoSchedule", "spot"),
        Taint("node-role.kubernetes.io/control-plane", "NoSchedule"),
        Taint("tritonOnly", "NoExecute", "true"),
    ],
)
def test_nfd_labels_nodes_with_any_taint(taint: Taint) -> None:
    """NVIDIA/gpu-operator#390: a GPU behind a taint was never labelled, so nothing named it."""
    for worker in nfd_workers():
        tainted = replace(node("gpu-1"), taints=(taint,))
        assert why_not(Placement(tolerations=tuple(worker["tolerations"])), tainted) is None


def nfd_workers() -> list[dict[str, Any]]:
    """The values of NFD's worker: in its own release, and in the operator's."""
    operator = values(stack(cluster_stack="gpu-operator"), "gpu-operator")
    alone = values(stack(), "node-feature-discovery")
    return [alone["worker"], operator["node-feature-discovery"]["worker"]]


@pytest.mark.parametrize("labels", [{kind.label: kind.value} for kind in load_node_kinds().foreign])
def test_nfd_runs_on_no_node_without_a_linux_kubelet(labels: dict[str, str]) -> None:
    """aws/amazon-cloudwatch-agent-operator#183: on Fargate its pods would stay Pending."""
    for worker in nfd_workers():
        wanted = worker["affinity"]["nodeAffinity"]
        terms = wanted["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        placed = Placement(terms=tuple(terms), tolerations=tuple(worker["tolerations"]))
        assert why_not(placed, replace(node("gpu-1"), labels={"x": "y"})) is None
        assert why_not(placed, replace(node("fargate-1"), labels=labels))


def test_user_values_override_the_values_that_a_chart_needs() -> None:
    plan = stack(
        replace(FACTS, server=ServerVersion(1, 19, "v1.19.16")),
        cluster_charts="newest",
        monitoring_exporter_values={"service": {"port": 9401}, "resources": None},
    )
    exporter = values(plan, "dcgm-exporter")
    assert exporter["service"] == {"internalTrafficPolicy": None, "port": 9401}
    assert exporter["rollingUpdate"] == {"maxSurge": None}
    assert exporter["resources"] is None


def test_time_slicing_and_runtime_class_reach_the_plugin() -> None:
    plan = stack(device_plugin_time_slicing=4, device_plugin_runtime_class="nvidia")
    plugin = values(plan, "nvidia-device-plugin")
    assert "replicas: 4" in plugin["config"]["map"]["shared"]
    assert plugin["runtimeClassName"] == "nvidia"
    assert values(plan, "dcgm-exporter")["runtimeClassName"] == "nvidia"
    old = stack(OLD, device_plugin_runtime_class="nvidia")
    assert "runtimeClassName" not in values(old, "dcgm-exporter")  # 2.6.10 does not know it


def test_counters_reach_charts_that_take_them() -> None:
    counters = "DCGM_FI_DEV_GPU_TEMP, gauge, temperature (C)"
    assert (
        "GPU_TEMP" in values(stack(monitoring_counters=counters), "dcgm-exporter")["customMetrics"]
    )
    ours = values(stack(), "dcgm-exporter")["customMetrics"]
    assert {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"} <= fields_of(ours)
    assert values(stack(), "dcgm-exporter")["serviceMonitor"]["relabelings"]


def test_charts_can_come_from_a_folder() -> None:
    (release, *_) = stack(cluster_chart_dir="/srv/charts").releases
    assert release.source.kind == "archive"
    assert release.source.location == "/srv/charts/kube-prometheus-stack-88.5.3.tgz"
    assert stack().releases[0].source.kind == "repository"


def test_hosts_of_the_inventory_are_nodes_also_without_their_domain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = (["gpu-1.lab.example", "gpu-2"], {})
    monkeypatch.setattr(operations, "state", State(Inventory(there, gpu_nodes=there), Config()))
    found = node_names(operations._node_data())
    assert sorted(found) == ["gpu-1", "gpu-1.lab.example", "gpu-2"]
    monkeypatch.setattr(operations, "state", State(Inventory(there), Config()))
    assert operations._node_data() == {}
