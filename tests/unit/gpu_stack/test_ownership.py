"""A label marks a release as gpufleet's. Releases of other users are used without a change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.gpu_stack.model import StackPlan
from gpufleet.kube.facts import ApiService, Crd, ObjectRef, ReleaseRef
from tests.unit.gpu_stack.gpu_clusters import (
    FACTS,
    MONITOR,
    OURS,
    codes,
    named,
    names,
    prometheus,
    stack,
    values,
    work,
)

PLUGIN, EXPORTER, NFD = "nvidia-device-plugin", "dcgm-exporter", "node-feature-discovery"
STACK = "kube-prometheus-stack"


@pytest.mark.parametrize(
    ("chart", "namespace", "code"),
    [
        (PLUGIN, "kube-system", "GF871"),
        (EXPORTER, "monitoring", "GF872"),
        (NFD, NFD, "GF878"),
        ("node-problem-detector", "monitoring", "GF893"),
        ("gpu-operator", "gpu-operator", "GF871"),
    ],
)
def test_a_release_under_our_name_is_left_to_its_owner(
    chart: str, namespace: str, code: str
) -> None:
    facts = replace(FACTS, releases=(named(chart, namespace, {}),))
    plan = stack(facts, monitoring_node_problems=True)
    assert (chart in names(plan), codes(plan)) == (False, {code})


def test_the_users_prometheus_is_used_under_every_name() -> None:
    facts = prometheus({"matchLabels": {"release": "kube-prometheus-stack"}})

    def plan(labels: dict[str, str], **data: Any) -> StackPlan:
        release = named("kube-prometheus-stack", "monitoring", labels)
        return stack(replace(facts, releases=(release,)), **data)

    assert "kube-prometheus-stack" in names(plan(OURS))
    theirs = plan({})
    assert "kube-prometheus-stack" not in names(theirs)
    monitor = values(theirs, EXPORTER)["serviceMonitor"]
    assert monitor["additionalLabels"] == {"release": "kube-prometheus-stack"}
    assert (theirs.secret, theirs.receivers) == (None, None)
    assert "kube-prometheus-stack" in names(plan({}, cluster_adopt_releases=True))


def test_an_api_of_a_foreign_release_under_our_name_is_taken() -> None:
    api = "v1beta1.custom.metrics.k8s.io"
    ref = ReleaseRef("monitoring", "prometheus-adapter")
    service = ApiService(api, ObjectRef("Service", "monitoring", "prometheus-adapter"), ref)

    def plan(labels: dict[str, str]) -> StackPlan:
        release = named("prometheus-adapter", "monitoring", labels)
        facts = replace(FACTS, api_services={api: service}, releases=(release,))
        return stack(facts, monitoring_autoscaling=True)

    assert "prometheus-adapter" in names(plan(OURS))
    assert "prometheus-adapter" not in names(plan({}))
    assert "GF890" in codes(plan({}))


def test_a_grafana_with_the_sidecar_gets_the_dashboards() -> None:
    grafana = replace(work("grafana", "x"), images=("grafana/grafana:12", "kiwigrid/k8s-sidecar:1"))
    facts = replace(prometheus({}), workloads=(grafana,))
    assert stack(facts).dashboards.objects
    assert stack(facts, monitoring_dashboards=False).dashboards.objects == ()
    plain = replace(grafana, images=grafana.images[:1])
    assert stack(replace(facts, workloads=(plain,))).dashboards.objects == ()


PROMETHEUSES = "prometheuses.monitoring.coreos.com"


def test_a_second_prometheus_operator_is_only_installed_on_request() -> None:
    operator = replace(work("operator", "prometheus-operator"), kind="Deployment", host_paths=())
    facts = replace(FACTS, workloads=(operator,))
    assert codes(stack(facts)) == set(), "without its kinds, a name alone proves nothing"
    kinds = {PROMETHEUSES: Crd(PROMETHEUSES, "Prometheus", ("v1",), {})}
    served = replace(facts, crds=kinds)
    left = stack(served)
    assert (STACK in names(left), codes(left)) == (False, {"GF919"})
    asked = stack(served, monitoring_prometheus="install")
    assert (STACK in names(asked), codes(asked)) == (True, {"GF914"})
    assert codes(stack(served, monitoring_prometheus="none")) == set()
    agents = replace(served, crds={**kinds, MONITOR: Crd(MONITOR, "ServiceMonitor", ("v1",), {})})
    advised = stack(agents, monitoring_prometheus="none", monitoring_scrape="service-monitor")
    assert codes(advised) == set()
    assert values(advised, "dcgm-exporter")["serviceMonitor"]["enabled"]
    assert STACK in names(stack(replace(served, releases=(named(STACK, "monitoring", OURS),))))


def test_a_node_exporter_on_the_port_replaces_ours() -> None:
    """https://github.com/prometheus-community/helm-charts/issues/2983 (2023-02-06)"""
    theirs = work("node-exporter", "node-exporter", ports=(9100,))
    facts = replace(FACTS, workloads=(theirs,))
    plan = stack(facts)
    assert (values(plan, STACK)["nodeExporter"], codes(plan)) == ({"enabled": False}, {"GF918"})
    wanted = {"nodeExporter": {"enabled": True}}
    own = stack(facts, monitoring_values=wanted)
    assert (values(own, STACK)["nodeExporter"], codes(own)) == ({"enabled": True}, set())
    ours = replace(
        work("ours", "node-exporter", ports=(9100,)),
        namespace="monitoring", release=ReleaseRef("monitoring", STACK),
    )  # fmt: skip
    record = named(STACK, "monitoring", OURS, workloads=(ours.ref,))
    later = replace(FACTS, workloads=(ours, theirs), releases=(record,))
    assert codes(stack(later)) == set(), "the one that has the port keeps it"
