"""The exporter's version, by the user's image, decides which fields its list may have."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.exporter.counters import counters_csv, load_counters
from gpufleet.gpu_stack.counters import FILE
from tests.unit.gpu_stack.gpu_clusters import OLD, codes, silent, stack

COUNTERS = load_counters()


def test_fields_that_an_old_exporter_does_not_know_are_refused() -> None:
    text = "DCGM_FI_DEV_ROW_REMAP_PENDING, gauge, pending\nDCGM_FI_MY_OWN, gauge, unknown to us\n"
    plan = stack(OLD, monitoring_counters=text)
    [blocker] = plan.blockers
    assert blocker.code == "GF910"
    assert "does not know DCGM_FI_DEV_ROW_REMAP_PENDING (3.0.0 and newer)." in blocker.message
    assert "MY_OWN" not in blocker.message
    assert stack(monitoring_counters=text).blockers == ()


def test_fields_that_a_newer_exporter_does_not_know_any_more_are_refused() -> None:
    text = "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS, gauge, reasons\n"
    pin = {"dcgm-exporter": "4.8.1"}
    ways: dict[str, dict[str, Any]] = {
        "monitoring_counters": {"monitoring_counters": text},
        "customMetrics in monitoring_exporter_values": {
            "monitoring_exporter_values": {"customMetrics": text}
        },
    }
    for source, data in ways.items():
        [blocker] = stack(cluster_chart_versions=pin, **data).blockers
        assert blocker.code == "GF910"
        assert f"the list in {source}: it does" in blocker.message
        assert "_THROTTLE_REASONS (before 4.7.1, and 4.8.2 and newer)" in blocker.message
        assert stack(**data).blockers == ()
    assert stack(OLD, monitoring_counters=text).blockers == ()


TAGS = {
    "3.1.8-3.1.5-ubuntu20.04": "3.1.5",
    "2.6.10-3.1.7-ubuntu22.04": "3.1.7",
    "3.3.5-3.4.0": "3.4.0",
    "4.5.3-4.8.2-distroless": "4.8.2",
    "v3.1.8-3.1.5_mine": "3.1.5",
    "3.1.5": "3.1.5",
    "v3.1.5": "3.1.5",
    "3.1.8-3.1.5-ubi8@sha256:0123456789abcdef": "3.1.5",
    "3.1.5@sha256:0123456789abcdef": "3.1.5",
}


@pytest.mark.parametrize("tag", TAGS)
def test_the_users_image_decides_which_fields_are_known(tag: str) -> None:
    pending = "DCGM_FI_DEV_ROW_REMAP_PENDING, gauge, pending\n"
    image = {"image": {"repository": "registry.example/mine/dcgm-exporter", "tag": tag}}
    plan = stack(OLD, monitoring_exporter_values=image)
    [config_map] = plan.counters.objects
    assert config_map["data"][FILE] == counters_csv(COUNTERS, TAGS[tag])
    assert codes(plan) == set()
    mine = stack(OLD, monitoring_exporter_values=image, monitoring_counters=pending)
    assert mine.blockers == ()


@pytest.mark.parametrize(
    "image",
    [{"repository": "registry.example/mine"}, {"tag": None}, {"tag": ""}, {"pullPolicy": "Always"}],
)
def test_an_image_without_a_tag_is_of_the_charts_version(image: dict[str, Any]) -> None:
    plan = stack(OLD, monitoring_exporter_values={"image": image})
    [config_map] = plan.counters.objects
    assert config_map["data"][FILE] == counters_csv(COUNTERS, "2.6.10")
    assert codes(plan) == {"GF897"}


@pytest.mark.parametrize("tag", ["mine", "latest", "1.0.0-mine", "3.1", 3.1, "0123456789abcdef"])
def test_a_tag_without_a_version_blocks_nothing_and_is_said(tag: object) -> None:
    pending = "DCGM_FI_DEV_ROW_REMAP_PENDING, gauge, pending\n"
    image = {"image": {"tag": tag}}
    plan = stack(OLD, monitoring_exporter_values=image, monitoring_counters=pending)
    assert plan.blockers == ()
    assert "GF911" in codes(plan)
    ours = stack(OLD, monitoring_exporter_values=image)
    [found] = [each for each in ours.findings if each.code == "GF911"]
    assert f"The tag {tag} in monitoring_exporter_values" in found.message
    assert "2.6.10, the chart's" in found.message
    [config_map] = ours.counters.objects
    assert config_map["data"][FILE] == counters_csv(COUNTERS, "2.6.10")


@pytest.mark.parametrize(("tag", "version"), [("3.1.8-3.1.5-ubuntu20.04", "3.1.5"), ("mine", "")])
def test_the_images_own_list_is_that_of_its_version(tag: str, version: str) -> None:
    """Alerts without a counter depend on the version of the image, if its tag names one."""
    words = ["--collectors=/etc/dcgm-exporter/dcp-metrics-included.csv"]
    plan = stack(OLD, monitoring_exporter_values={"arguments": words, "image": {"tag": tag}})
    pin = {"dcgm-exporter": version or "2.6.10"}
    same = stack(cluster_chart_versions=pin, monitoring_exporter_values={"arguments": words})
    assert silent(plan) == silent(same)
    assert silent(stack(OLD, monitoring_exporter_values={"arguments": words})) != (
        silent(plan) if version else set()
    )
