"""The list of counters: it has every counter that an alert needs."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from gpufleet.exporter.counters import (
    counters_csv,
    fields_of,
    has_list,
    load_counters,
    own_fields,
    renames_metrics,
    unknown_fields,
)
from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.helm.chart_choice import load_charts
from gpufleet.monitoring.alert_models import load_alerts
from gpufleet.monitoring.alert_rules import missing_fields
from gpufleet.node.catalog import load_catalog

pytestmark = pytest.mark.claim("No alert needs a field that the exporter's list lacks.", level=1)

COUNTERS, ALERTS = load_counters(), load_alerts()
GENERATIONS = [generation.name for generation in load_catalog().gpus.generations]
HOSTS = [known.version for known in load_catalog().exporter.versions]
CHARTS = list(load_charts().charts["dcgm-exporter"].installed)
OURS = [version for version in ["3.4.0", *HOSTS, *CHARTS] if has_list(COUNTERS, version)]
PAGE = (Path(__file__).resolve().parents[3] / "docs/reference/alerts.md").read_text("utf-8")
# Alerts that work only if the exporter has gpufleet's list of counters: from the page's table.
NEED_OUR_LIST = set(
    re.findall(r"^\| \[(\w+)\]\S+ \|.*\bour list of counters \|", PAGE, re.MULTILINE)
)
# Alerts on fields that no exporter before 3.0.0 has, whatever its list.
NEED_A_NEWER_EXPORTER = {"GpuRowRemapPending", "GpuMemoryHot"}
# Fields that these exporters do not know, by the maps in the revisions of go-dcgm that they pin.
UNKNOWN = {
    "2.6.10": {"DCGM_FI_DEV_MEM_MAX_OP_TEMP", "DCGM_FI_DEV_ROW_REMAP_PENDING"},
    "3.1.5": set(),
    "3.4.0": set(),
}  # fmt: skip


def collected(version: str) -> frozenset[str]:
    """The fields of our list for an exporter of that version, on every GPU."""
    return fields_of(counters_csv(COUNTERS, version) or "")


def rows(text: str) -> list[list[str]]:
    """The rows of a list, parsed as dcgm-exporter does: CSV without comment lines."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [[field.strip() for field in row] for row in csv.reader(io.StringIO("\n".join(lines)))]


@pytest.mark.parametrize("version", OURS)
@pytest.mark.parametrize("generation", [None, *GENERATIONS])
def test_a_list_is_one_that_the_exporter_reads(version: str, generation: str | None) -> None:
    text = counters_csv(COUNTERS, version, [generation] if generation else [])
    assert text is not None
    found = rows(text)
    assert all(len(row) == 3 for row in found)
    assert {row[1] for row in found} <= {"gauge", "counter", "label"}
    names = [row[0] for row in found]
    assert len(set(names)) == len(names)
    assert {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_TEMP"} <= set(names)
    assert set(names) == fields_of(text)
    load_cluster_settings({"monitoring_counters": text})


def test_profiling_and_remapping_are_for_gpus_that_have_them() -> None:
    def fields(*generations: str) -> frozenset[str]:
        return fields_of(counters_csv(COUNTERS, "4.8.2", generations) or "")

    assert "DCGM_FI_PROF_SM_ACTIVE" not in fields("Pascal")
    assert "DCGM_FI_PROF_SM_ACTIVE" in fields("Volta")
    assert "DCGM_FI_PROF_SM_ACTIVE" in fields("Pascal", "Hopper")
    assert "DCGM_FI_DEV_RETIRED_DBE" in fields("Pascal")
    assert "DCGM_FI_DEV_RETIRED_DBE" not in fields("Hopper")
    assert "DCGM_FI_DEV_ROW_REMAP_PENDING" not in fields("Turing")


def test_names_follow_the_version() -> None:
    new, old = collected("4.8.2"), collected("3.6.1")
    assert "DCGM_FI_DEV_CLOCKS_EVENT_REASONS" in new
    assert "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS" not in new
    assert "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS" in old
    assert "DCGM_FI_DEV_CLOCKS_EVENT_REASONS" not in old


def test_generations_are_those_of_the_catalog() -> None:
    named = {name for topic in COUNTERS.topics for name in topic.generations}
    assert {*named, *COUNTERS.profiling} <= set(GENERATIONS)


@pytest.mark.parametrize("version", OURS)
def test_alerts_use_only_what_our_list_collects(version: str) -> None:
    there = collected(version)
    assert {a.name for a in ALERTS.alerts if missing_fields(ALERTS, a, there)} == (
        NEED_A_NEWER_EXPORTER if version == "2.6.10" else set()
    )


@pytest.mark.parametrize("version", UNKNOWN)
def test_a_list_has_no_field_that_the_exporter_does_not_know(version: str) -> None:
    new = {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS"}  # from 4.0.1 on; before it, another name
    new |= {"DCGM_EXP_XID_ERRORS_COUNT"} if version != "3.4.0" else set()
    everything = {field.field for topic in COUNTERS.topics for field in topic.fields}
    assert everything - collected(version) == UNKNOWN[version] | new
    assert set(unknown_fields(COUNTERS, version, everything)) == UNKNOWN[version] | new
    assert unknown_fields(COUNTERS, version, collected(version)) == {}


def test_a_field_that_some_newer_exporters_lack_is_unknown_to_them() -> None:
    old = "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"
    known = "before 4.7.1, and 4.8.2 and newer"
    for version in ("4.7.1", "4.8.0", "4.8.1"):
        assert unknown_fields(COUNTERS, version, [old]) == {old: known}
    for version in ("2.6.10", "3.6.1", "4.0.1", "4.7.0", "4.8.2"):  # our list has one of its names
        assert unknown_fields(COUNTERS, version, [old]) == {}


@pytest.mark.parametrize(("version", "new"), [
    ("2.6.10", False), ("4.8.99", False), ("4.9.0", True), ("9.0.0", True),
])  # fmt: skip
def test_exporters_from_the_end_of_our_lists_on_use_other_names(version: str, new: bool) -> None:
    assert renames_metrics(COUNTERS, version) is new


def test_what_does_not_work_without_our_list_is_known() -> None:
    for version in {*HOSTS, *CHARTS}:
        there = own_fields(COUNTERS, version)
        silent = {alert.name for alert in ALERTS.alerts if missing_fields(ALERTS, alert, there)}
        if renames_metrics(COUNTERS, version):
            assert not there
            assert silent > NEED_OUR_LIST
        else:
            assert silent == NEED_OUR_LIST, version
    assert counters_csv(COUNTERS, "2.6.8") is None, "it does not know the type label"
    assert counters_csv(COUNTERS, "4.9.0") is None
