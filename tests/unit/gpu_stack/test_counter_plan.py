"""How the exporter of a cluster gets its list of counters."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpufleet.exporter.counters import load_counters
from gpufleet.exporter.counters_file import counters_csv, fields_of
from gpufleet.gpu_stack.counters import CHECKSUM, CONFIG_MAP, FILE
from gpufleet.gpu_stack.model import StackPlan
from gpufleet.kube.objects import ObjectSet
from tests.unit.gpu_stack.gpu_clusters import OLD, codes, stack, values

COUNTERS = load_counters()
PATH = f"/etc/gpufleet/{FILE}"
ALSO = "DCGM_FI_DEV_GPU_TEMP, gauge, temperature (C)\nDCGM_FI_DEV_ECC_DBE_VOL_TOTAL, counter, ECC\n"
VOLUME = {"name": "mine", "configMap": {"name": "mine"}}
MOUNT = {"name": "mine", "mountPath": "/mine"}
# Alerts whose fields the exporter of 2.6.10 does not know.
UNKNOWN = {"GpuRowRemapPending", "GpuMemoryHot"}


def exporter(plan: StackPlan) -> Any:
    return values(plan, "dcgm-exporter")


def list_of(plan: StackPlan) -> ObjectSet:
    assert plan.counters is not None
    return plan.counters


def silent(plan: StackPlan) -> set[str]:
    """The alerts that GF897 names."""
    found = [finding.message for finding in plan.findings if finding.code == "GF897"]
    return set(re.findall(r"\bGpu\w+", " ".join(found)))


def test_a_chart_without_the_value_mounts_our_config_map() -> None:
    plan = stack(OLD)
    [config_map] = list_of(plan).objects
    assert list_of(plan).namespace == "monitoring"
    assert config_map["metadata"]["name"] == CONFIG_MAP
    assert config_map["data"] == {FILE: counters_csv(COUNTERS, "2.6.10")}
    given = exporter(plan)
    assert given["arguments"] == ["-f", PATH]
    assert given["extraConfigMapVolumes"] == [
        {"name": CONFIG_MAP, "configMap": {"name": CONFIG_MAP}}
    ]
    [mount] = given["extraVolumeMounts"]
    assert (mount["name"], mount["mountPath"]) == (CONFIG_MAP, "/etc/gpufleet")
    assert given["podAnnotations"] == {CHECKSUM: config_map["metadata"]["annotations"][CHECKSUM]}
    assert "customMetrics" not in given
    assert silent(plan) == UNKNOWN


@pytest.mark.parametrize(
    ("pin", "unheard"), [("2.6.11", UNKNOWN), ("3.1.5", set()), ("3.5.0", set())]
)
def test_every_chart_before_the_value_does(pin: str, unheard: set[str]) -> None:
    plan = stack(cluster_chart_versions={"dcgm-exporter": pin})
    assert exporter(plan)["arguments"] == ["-f", PATH]
    assert silent(plan) == unheard
    assert len(list_of(plan).objects) == 1


def test_a_chart_with_the_value_needs_no_config_map_of_ours() -> None:
    plan = stack()
    assert "arguments" not in exporter(plan)
    assert exporter(plan)["customMetrics"] == counters_csv(COUNTERS, "4.8.2")
    assert list_of(plan).objects == (), "one of an earlier version is deleted"
    assert silent(plan) == set()


def test_another_list_restarts_the_pods_of_every_chart() -> None:
    for plans in (
        [stack(), stack(monitoring_counters=ALSO)],
        [stack(OLD), stack(OLD, monitoring_counters=ALSO)],
    ):
        first, second = (exporter(plan)["podAnnotations"][CHECKSUM] for plan in plans)
        assert first != second
        assert not re.fullmatch(r"[0-9.eE+-]+", first), "YAML would read a number"


def test_a_list_of_the_user_reaches_old_charts() -> None:
    plan = stack(OLD, monitoring_counters=ALSO)
    [config_map] = list_of(plan).objects
    assert fields_of(config_map["data"][FILE]) == fields_of(ALSO)
    assert "GF877" not in codes(plan)
    assert "GpuEccUncorrectable" not in silent(plan)
    assert "GpuPcieNarrow" in silent(plan)


def test_no_list_is_passed_without_our_exporter() -> None:
    assert stack(OLD, monitoring_exporter=False).counters is None
    assert stack(OLD, cluster_stack="gpu-operator").counters is None


def test_an_exporter_that_knows_no_labels_gets_the_users_list_alone() -> None:
    pin = {"dcgm-exporter": "2.6.8"}
    plan = stack(OLD, cluster_chart_versions=pin)
    assert list_of(plan).objects == ()
    assert "arguments" not in exporter(plan)
    assert silent(plan) > UNKNOWN
    mine = stack(OLD, cluster_chart_versions=pin, monitoring_counters=ALSO)
    assert exporter(mine)["arguments"] == ["-f", PATH]


def test_a_chart_that_mounts_nothing_keeps_its_own_list() -> None:
    plan = stack(OLD, cluster_chart_versions={"dcgm-exporter": "2.4.0"}, monitoring_counters=ALSO)
    assert {"GF877", "GF897"} <= codes(plan)
    assert not {"arguments", "podAnnotations"} & set(exporter(plan))
    assert silent(plan) > UNKNOWN


@pytest.mark.parametrize("facts", [{"facts": OLD}, {}], ids=["old", "new"])
def test_volumes_of_the_user_stay_beside_ours(facts: dict[str, Any]) -> None:
    theirs = {"extraConfigMapVolumes": [VOLUME], "extraVolumeMounts": [MOUNT]}
    plan = stack(**facts, monitoring_exporter_values=theirs)
    given = exporter(plan)
    assert [one["name"] for one in given["extraConfigMapVolumes"]] == ["mine", CONFIG_MAP]
    assert [one["name"] for one in given["extraVolumeMounts"]] == ["mine", CONFIG_MAP]
    assert given["arguments"] == ["-f", PATH], "the chart's own volumes are replaced"
    assert silent(plan) == (UNKNOWN if facts else set())


THEIRS: dict[str, dict[str, Any]] = {
    "file": {"arguments": ["-f", "/mine/list.csv"]},
    "long": {"arguments": ["--collectors=/mine/list.csv"]},
    "config map": {"arguments": ["-m", "monitoring:mine"]},
    "over the image's": {
        "extraVolumeMounts": [{**MOUNT, "mountPath": "/etc/dcgm-exporter/default-counters.csv"}]
    },
    "folder": {"extraVolumeMounts": [{**MOUNT, "mountPath": "/etc/dcgm-exporter"}]},
    "variable": {"extraEnv": [{"name": "DCGM_EXPORTER_COLLECTORS", "value": "/mine/list.csv"}]},
    "no list": {"arguments": "-f /mine/list.csv"},
}


@pytest.mark.parametrize("facts", [{"facts": OLD}, {}], ids=["old", "new"])
@pytest.mark.parametrize("theirs", THEIRS.values(), ids=list(THEIRS))
def test_a_list_that_the_users_values_name_wins(
    theirs: dict[str, Any], facts: dict[str, Any]
) -> None:
    plan = stack(**facts, monitoring_exporter_values=theirs, monitoring_counters=ALSO)
    given = exporter(plan)
    assert {key: given[key] for key in theirs} == theirs
    assert not {"customMetrics", "podAnnotations"} & set(given)
    assert list_of(plan).objects == ()
    assert codes(plan) == {"GF877"}, "which alerts lack fields is unknown"
    assert codes(stack(**facts, monitoring_exporter_values=theirs)) == set()


@pytest.mark.parametrize(
    "words", [["-d", "g"], ["-f", "/etc/dcgm-exporter/default-counters.csv"], None]
)
def test_other_arguments_of_the_user_win_and_what_is_silent_is_said(
    words: list[str] | None,
) -> None:
    theirs = {"arguments": words}
    plan = stack(OLD, monitoring_exporter_values=theirs, monitoring_counters=ALSO)
    assert exporter(plan)["arguments"] == words
    assert list_of(plan).objects == ()
    assert codes(plan) == {"GF877", "GF897"}
    assert silent(plan) > UNKNOWN
    new = stack(monitoring_exporter_values=theirs)
    assert "customMetrics" in exporter(new), "the chart mounts it over the file of the image"
    assert codes(new) == set()


def test_the_users_value_of_the_chart_is_what_alerts_are_compared_with() -> None:
    plan = stack(monitoring_exporter_values={"customMetrics": ALSO})
    assert exporter(plan)["customMetrics"] == ALSO
    assert "GpuPcieNarrow" in silent(plan)
    none = {"monitoring_exporter_values": {"customMetrics": None}}
    assert exporter(stack(**none))["customMetrics"] is None
    assert "GpuEccUncorrectable" in silent(stack(**none)), "the chart's own list applies"
    assert "GF877" in codes(stack(**none, monitoring_counters=ALSO))


def test_fields_that_an_old_exporter_does_not_know_are_refused() -> None:
    text = "DCGM_FI_DEV_ROW_REMAP_PENDING, gauge, pending\nDCGM_FI_MY_OWN, gauge, unknown to us\n"
    plan = stack(OLD, monitoring_counters=text)
    [blocker] = plan.blockers
    assert blocker.code == "GF910"
    assert "DCGM_FI_DEV_ROW_REMAP_PENDING (since 3.0.0)." in blocker.message
    assert stack(monitoring_counters=text).blockers == ()


def test_the_users_image_decides_which_fields_are_known() -> None:
    image = {"image": {"tag": "3.1.8-3.1.5-ubuntu20.04"}}
    plan = stack(OLD, monitoring_exporter_values=image)
    [config_map] = list_of(plan).objects
    assert config_map["data"][FILE] == counters_csv(COUNTERS, "3.1.5")
    assert codes(plan) == set()
    mine = stack(OLD, monitoring_exporter_values={"image": {"tag": "mine"}})
    assert silent(mine) == UNKNOWN, "an unknown tag is taken for the chart's version"


def test_the_config_map_is_where_the_chart_puts_its_pods() -> None:
    plan = stack(OLD, monitoring_exporter_values={"namespaceOverride": "gpus"})
    assert list_of(plan).namespace == "gpus"
    assert list_of(plan).path == "/api/v1/namespaces/gpus/configmaps"
