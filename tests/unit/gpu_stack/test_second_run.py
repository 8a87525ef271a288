"""Values that depend on the changes of a first run, and on labels of NFD."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.kube.facts import HelmRelease
from gpufleet.kube.helm_releases import OWNER_LABEL
from gpufleet.kube.parse import placement_of
from gpufleet.kube.scheduling import fitting_nodes
from tests.unit.gpu_stack.gpu_clusters import FACTS, LABEL, node, stack, values, work

OURS = {OWNER_LABEL: "machine"}


@pytest.mark.parametrize("data", [{}, {"device_plugin_time_slicing": 4},
                                  {"device_plugin_mig_strategy": "mixed"}])  # fmt: skip
@pytest.mark.parametrize(
    ("labels", "registered", "after"),
    [
        ({}, {"nvidia.com/gpu": 8}, "1Gi"),
        ({"nvidia.com/gpu.count": "8"}, {"nvidia.com/gpu": 8}, "1Gi"),
        ({"nvidia.com/gpu.count": "8"}, {"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": 56}, "1Gi"),
        ({}, {"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 32}, "1Gi"),
        ({}, {"nvidia.com/gpu": 1}, "1Gi"),
    ],
)
def test_the_second_run_does_not_change_the_exporter(
    labels: dict[str, str], registered: dict[str, int], after: str, data: dict[str, Any]
) -> None:
    """The plugin of the first run makes nodes advertise GPUs: pytorch/ci-infra#1011."""
    fresh = node("gpu-1", {**LABEL, **labels})
    first = values(stack(replace(FACTS, nodes=(fresh,)), **data), "dcgm-exporter")
    assert first["resources"]["limits"]["memory"] == after
    record = HelmRelease(
        "dcgm-exporter",
        "monitoring",
        1,
        "deployed",
        "dcgm-exporter",
        "4.8.2",
        "",
        first,
        labels=OURS,
    )
    later = replace(fresh, capacity=registered, allocatable=registered)
    again = stack(replace(FACTS, nodes=(later,), releases=(record,)), **data)
    assert values(again, "dcgm-exporter") == first


def test_the_exporters_memory_is_never_lowered() -> None:
    def limit(gpus: int, before: str) -> str:
        given = {"resources": {"limits": {"memory": before}}}
        record = HelmRelease(
            "dcgm-exporter",
            "monitoring",
            1,
            "deployed",
            "dcgm-exporter",
            "4.8.2",
            "",
            given,
            labels=OURS,
        )
        facts = replace(FACTS, nodes=(node("gpu-1", LABEL, gpus),), releases=(record,))
        return str(values(stack(facts), "dcgm-exporter")["resources"]["limits"]["memory"])

    assert (limit(1, "1Gi"), limit(8, "512Mi"), limit(0, "512Mi")) == ("1Gi", "1Gi", "512Mi")
    assert limit(1, "2Gi") == "512Mi"  # a user set that and no longer does


def test_pods_also_select_the_labels_of_an_nfd_with_its_own_defaults() -> None:
    """NVIDIA/k8s-device-plugin#1213: pci-0302_10de instead of pci-10de."""
    label = {"feature.node.kubernetes.io/pci-0302_10de.present": "true"}
    nfd = work("nfd-worker", "node-feature-discovery")
    plan = stack(
        replace(FACTS, nodes=(node("gpu-1", label),), workloads=(nfd,)),
        monitoring_node_problems=True,
    )
    assert plan.gpu_nodes == ("gpu-1",)
    for name in ("nvidia-device-plugin", "dcgm-exporter", "node-problem-detector"):
        affinity = {"affinity": values(plan, name)["affinity"]}
        (found,) = fitting_nodes(placement_of(affinity), [node("gpu-1", label)])
        assert found.name == "gpu-1"
