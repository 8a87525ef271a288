"""The source of each chart, by the settings."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.helm.builder import chart_source
from gpufleet.helm.chart_choice import choose_charts, load_charts
from gpufleet.helm.release import ChartSource

CHOICE = choose_charts(load_charts(), "1.36")["dcgm-exporter"]
ARCHIVE = f"dcgm-exporter-{CHOICE.version}.tgz"
HTTP, OCI = "https://charts.example.com/gpu", "oci://registry.example.com:5000/charts"


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        ({}, ChartSource("repository", CHOICE.repository)),
        ({"chart_dir": "/charts"}, ChartSource("archive", f"/charts/{ARCHIVE}")),
        ({"chart_repository": HTTP + "/"}, ChartSource("repository", HTTP)),
        ({"chart_repository": OCI}, ChartSource("oci", f"{OCI}/dcgm-exporter")),
        (
            {"chart_repository": {"dcgm-exporter": OCI}, "chart_dir": "/charts"},
            ChartSource("oci", f"{OCI}/dcgm-exporter"),
        ),
        (
            {"chart_repository": {"gpu-operator": OCI}, "chart_dir": "/charts"},
            ChartSource("archive", f"/charts/{ARCHIVE}"),
        ),
        (
            {"chart_repository": {"gpu-operator": OCI}},
            ChartSource("repository", CHOICE.repository),
        ),
        (
            {"chart_repository": OCI, "chart_logins": "~/l", "chart_plain_http": True},
            ChartSource("oci", f"{OCI}/dcgm-exporter", "~/l", True),
        ),
        (
            {"chart_logins": "~/l", "chart_plain_http": True},
            ChartSource("repository", CHOICE.repository, "~/l"),
        ),
    ],
)
def test_the_nearest_setting_counts(data: dict[str, Any], wanted: ChartSource) -> None:
    settings, problems = load_cluster_settings({f"cluster_{key}": data[key] for key in data})
    assert problems == []
    assert settings
    assert chart_source(CHOICE, settings.cluster) == wanted


def test_the_host_of_a_source() -> None:
    assert ChartSource("oci", f"{OCI}/x").host == "registry.example.com:5000"
    assert ChartSource("repository", HTTP).host == "charts.example.com"
