"""Shared by the tests of gpu operator."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.helm.chart_choice import choose_charts, load_charts
from tests.cluster.stacking import REAL_CHARTS, Bench, Outcome

# simulated nodes offer GPUs from the start, as if others ran a plugin there
OPERATOR: dict[str, Any] = {"cluster_stack": "gpu-operator", "monitoring_prometheus": "none"}
POLICY = "cluster-policy"


def deploy(bench: Bench, **data: Any) -> Outcome:
    version = choose_charts(load_charts(), bench.cluster.version)["gpu-operator"].version
    if REAL_CHARTS and not (bench.charts / f"gpu-operator-{version}.tgz").exists():
        pytest.skip(f"GPUFLEET_CHARTS has no gpu-operator {version}")
    return bench.deploy(**{**OPERATOR, **data})


def message(done: Outcome, code: str) -> str:
    """The message of the one finding with that code."""
    (found,) = (entry for entry in done.report["findings"] if entry["code"] == code)
    return str(found["message"])
