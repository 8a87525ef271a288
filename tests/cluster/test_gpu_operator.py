"""The GPU Operator's release on real control planes, with a fake operator."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

from tests.cluster.fake_operator import PLURAL, FakeOperator
from tests.cluster.gpu_operator_setup import OPERATOR, POLICY, deploy
from tests.cluster.stacking import Bench

pytestmark = pytest.mark.claim(
    "The GPU Operator's release is done when its ClusterPolicy and operands are (the "
    "operator is a fake).",
    level=5,
)

OPERATOR |= {"device_plugin_enabled": True}


def test_it_is_ready_once_plugin_and_exporter_are_on_every_gpu_node(bench: Bench) -> None:
    with FakeOperator(bench.cluster) as operator:
        done = deploy(bench)
        assert done.returncode == 0, done.output
        assert bench.releases() == {"gpu-operator": "deployed"}
        assert operator.states[-1] == "ready"
        checks = bench.verify(**OPERATOR)
        assert checks["operator_is_ready"]["outcome"] == "passed"
        failed = {
            name for name, part in checks.items() if part["outcome"] not in ("passed", "skipped")
        }
        assert failed == set()
        again = deploy(bench)
        assert (again.returncode, again.report["changed"]) == (0, 0), again.output
        objects: Any = client.CustomObjectsApi(bench.cluster.api)
        objects.delete_cluster_custom_object(*PLURAL, POLICY)
        fixed = deploy(bench)
        assert fixed.returncode == 0, fixed.output
        assert "ClusterPolicy of release gpu-operator/gpu-operator is missing" in fixed.output
        assert deploy(bench).report["changed"] == 0
