"""Clusters and their plans, for the tests of plans of GPU stacks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpufleet.gpu_stack.model import StackPlan
from gpufleet.gpu_stack.plan import plan_stack
from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.helm.chart_choice import load_charts
from gpufleet.kube.facts import (
    ClusterFacts,
    ClusterNode,
    Crd,
    HelmRelease,
    Placement,
    PrometheusInstance,
    ReleaseRef,
    ServerVersion,
    Workload,
)
from gpufleet.kube.helm_releases import OWNER_LABEL
from gpufleet.kube.objects import ObjectSet

CATALOG = load_charts()
LABEL = {"nvidia.com/gpu.present": "true"}
OURS = {OWNER_LABEL: "1234"}
MONITOR = "servicemonitors.monitoring.coreos.com"


def node(name: str, labels: dict[str, str] | None = None, gpus: int = 0) -> ClusterNode:
    """A node whose device plugin has gone: its capacity has the GPUs, its allocatable has 0."""
    resources = {"nvidia.com/gpu": gpus} if gpus else {}
    return ClusterNode(name, labels or {}, (), resources, dict.fromkeys(resources, 0))


NODES = (node("cpu-1"), node("gpu-1", LABEL, 8), node("gpu-2", LABEL, 8))
FACTS = ClusterFacts("test", ServerVersion(1, 36, "v1.36.3"), nodes=NODES)
OLD = replace(FACTS, server=ServerVersion(1, 18, "v1.18.19"))


def work(name: str, image: str, *, release: str = "", ports: tuple[int, ...] = ()) -> Workload:
    """A DaemonSet in the namespace `elsewhere` that mounts a path of its nodes."""
    return Workload(
        kind="DaemonSet",
        namespace="elsewhere",
        name=name,
        images=(f"registry.example/x/{image}:1",),
        host_ports=ports,
        host_network=False,
        wanted=2,
        ready=2,
        updated=2,
        old=0,
        settled=True,
        selector={},
        placement=Placement(),
        release=ReleaseRef("elsewhere", release) if release else None,
        host_paths=("/var/lib/kubelet",),
    )


def released(found: Workload, chart: str) -> ClusterFacts:
    """A cluster with a release that is named like its chart and has the workload."""
    made = replace(found, release=ReleaseRef(found.namespace, chart))
    record = HelmRelease(
        chart, found.namespace, 1, "deployed", chart, "1.0.0", "1", {}, labels=OURS,
        workloads=(found.ref,),
    )  # fmt: skip
    return replace(FACTS, workloads=(made,), releases=(record,))


def named(chart: str, namespace: str, labels: dict[str, str], **more: Any) -> HelmRelease:
    """A release with the name of its chart; `labels`: those of its Secret."""
    return HelmRelease(
        chart, namespace, 1, "deployed", chart, "0.1.0", "", {}, labels=labels, **more
    )


def prometheus(selector: dict[str, Any] | None) -> ClusterFacts:
    spec = {
        "serviceMonitorSelector": selector,
        "serviceMonitorNamespaceSelector": {},
        "ruleNamespaceSelector": {},
    }
    instance = PrometheusInstance("infra", "main", spec)
    crd = Crd(MONITOR, "ServiceMonitor", ("v1",), {})
    return replace(FACTS, prometheuses=(instance,), crds={MONITOR: crd})


def silent(plan: StackPlan) -> set[str]:
    """The alerts that GF897 names."""
    found = [finding.message for finding in plan.findings if finding.code == "GF897"]
    return set(re.findall(r"\bGpu\w+", " ".join(found)))


def stack(
    facts: ClusterFacts = FACTS,
    hosts: tuple[str, ...] = (),
    keys: Mapping[str, Mapping[str, Any]] | None = None,
    **data: Any,
) -> StackPlan:
    """The plan of a cluster with these data. `keys`: host of the inventory -> its data."""
    settings, problems = load_cluster_settings(data)
    assert settings, problems
    return plan_stack(settings, facts, CATALOG, hosts, keys or {})


def names(plan: StackPlan) -> list[str]:
    return [release.name for release in plan.releases]


def values(plan: StackPlan, name: str) -> Any:
    (release,) = (release for release in plan.releases if release.name == name)
    return release.values


def codes(plan: StackPlan) -> set[str]:
    return {finding.code for finding in plan.findings}


def exporter_monitor(plan: StackPlan) -> ObjectSet:
    """gpufleet's own ServiceMonitor. Raises if gpufleet does not install the exporter."""
    assert plan.exporter_monitor is not None
    return plan.exporter_monitor
