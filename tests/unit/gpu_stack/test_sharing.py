"""GPUs that pods share: each pod gets metrics, unless the exporter would then drop others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.core.merge import value_at
from tests.unit.gpu_stack.gpu_clusters import FACTS, LABEL, codes, node, stack, values

OURS = {"name": "KUBERNETES_VIRTUAL_GPUS", "value": "true"}
CONFIG = (
    "version: v1\nsharing:\n  timeSlicing:\n    resources: [{name: nvidia.com/gpu, replicas: 4}]\n"
)
BY_LABEL = {**LABEL, "nvidia.com/gpu.sharing-strategy": "mps"}


def environment(facts: Any = FACTS, **data: Any) -> list[dict[str, str]]:
    return list(values(stack(facts, **data), "dcgm-exporter").get("extraEnv", []))


def test_gpus_of_one_pod_each_need_nothing() -> None:
    plan = stack()
    assert "extraEnv" not in values(plan, "dcgm-exporter")
    alone = {**LABEL, "nvidia.com/gpu.sharing-strategy": "none"}
    assert environment(replace(FACTS, nodes=(node("gpu-1", alone, 8),))) == []


def test_time_slicing_is_measured_by_pod() -> None:
    """https://github.com/NVIDIA/dcgm-exporter/issues/307"""
    assert environment(device_plugin_time_slicing=4) == [OURS]
    assert environment(device_plugin_values={"config": {"map": {"default": CONFIG}}}) == [OURS]


def test_what_others_share_is_seen_by_its_label() -> None:
    assert environment(replace(FACTS, nodes=(node("gpu-1", BY_LABEL, 8),))) == [OURS]


def test_variables_of_the_user_stay() -> None:
    own = {"name": "DCGM_EXPORTER_INTERVAL", "value": "10000"}
    given = {"extraEnv": [own]}
    both = environment(device_plugin_time_slicing=4, monitoring_exporter_values=given)
    assert both == [own, OURS]
    off = {"extraEnv": [{"name": "KUBERNETES_VIRTUAL_GPUS", "value": "false"}]}
    kept = environment(device_plugin_time_slicing=4, monitoring_exporter_values=off)
    assert kept == off["extraEnv"]


@pytest.mark.parametrize("tag", ["4.5.2-4.8.1-distroless", "4.4.2-4.7.0-ubuntu22.04", "mine"])
def test_exporters_that_drop_idle_gpus_by_it_do_not_get_it(tag: str) -> None:
    """https://github.com/NVIDIA/dcgm-exporter/issues/549 and 611: fixed in 4.8.2."""
    image = {"image": {"tag": tag}}
    plan = stack(device_plugin_time_slicing=4, monitoring_exporter_values=image)
    assert "GF912" in codes(plan)
    assert "extraEnv" not in values(plan, "dcgm-exporter")


def test_old_charts() -> None:
    pins = {"dcgm-exporter": "4.7.1"}
    plan = stack(device_plugin_time_slicing=4, cluster_chart_versions=pins)
    assert "GF912" in codes(plan)


@pytest.mark.parametrize("labels", [LABEL, BY_LABEL])
def test_a_configuration_of_the_user_gives_the_same_variables_in_each_run(
    labels: dict[str, str],
) -> None:
    """GFD sets its label after the first run; a new variable would restart the exporters."""
    facts = replace(FACTS, nodes=(node("gpu-1", labels, 8),))
    config = {"config": {"name": "mine", "default": "any"}}
    assert environment(facts, device_plugin_values=config) == [OURS]
    asked = {"cluster_stack": "gpu-operator", "gpu_operator_values": {"devicePlugin": config}}
    plan = stack(facts, **asked)
    assert value_at(values(plan, "gpu-operator"), "dcgmExporter.env") == [OURS]


def test_nothing_is_claimed_of_a_configuration_that_is_not_known() -> None:
    pins = {"dcgm-exporter": "4.7.1"}
    config = {"config": {"name": "mine"}}
    plan = stack(device_plugin_values=config, cluster_chart_versions=pins)
    assert "GF912" not in codes(plan)


def test_the_configuration_of_the_operator_is_read() -> None:
    def variables(text: str) -> Any:
        config = {"create": True, "name": "mine", "default": "a", "data": {"a": text}}
        given = {"devicePlugin": {"config": config}}
        plan = stack(cluster_stack="gpu-operator", gpu_operator_values=given)
        return value_at(values(plan, "gpu-operator"), "dcgmExporter.env")

    assert variables(CONFIG) == [OURS]
    assert variables("version: v1\n# sharing: later\nflags: {migStrategy: none}\n") is None
