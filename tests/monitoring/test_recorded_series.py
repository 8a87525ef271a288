"""The series that the rules record, on a real Prometheus with a fleet that has all label
variants."""

from __future__ import annotations

import pytest

from gpufleet.monitoring.alert_models import load_alerts
from gpufleet.monitoring.alert_rules import expand_macros, field_expr
from tests.monitoring.conftest import Prometheus
from tests.monitoring.fleet import END, GPUS, Gpu

CATALOG = load_alerts()
UP = [gpu for gpu in GPUS if gpu.node.ready]  # gpu-3 has been down for twenty minutes
RECORDS = {record.name: expand_macros(CATALOG, record.expr) for record in CATALOG.records}


def name(gpu: Gpu) -> tuple[str, str]:
    return gpu.node.name, gpu.uuid


@pytest.mark.parametrize("field", ["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_FB_USED"])
def test_every_gpu_is_there_once_under_its_node(field: str, fleet_server: Prometheus) -> None:
    found = [s["metric"] for s in fleet_server.query(field_expr(CATALOG, field), at=END)]
    whole = [(one["node"], one["UUID"]) for one in found if "GPU_I_ID" not in one]
    assert len(set(whole)) == len(whole)
    assert {(one["node"], one["UUID"]) for one in found} == {name(gpu) for gpu in UP}


def test_workloads_are_those_that_have_gpus(fleet_server: Prometheus) -> None:
    found = [s["metric"] for s in fleet_server.query(RECORDS["workload"], at=END)]
    have = {(one["node"], one["UUID"], one["namespace"], one["pod"]) for one in found}
    wanted = {(*name(gpu), gpu.pod.namespace, gpu.pod.name) for gpu in UP if gpu.pod}
    assert have == wanted


def test_a_node_has_its_drivers(fleet_server: Prometheus) -> None:
    found = [s["metric"] for s in fleet_server.query(RECORDS["driver"], at=END)]
    assert {one["node"] for one in found} == {gpu.node.name for gpu in UP}
