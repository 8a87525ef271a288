"""How the exporter of a cluster gets its list of counters."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpufleet.exporter.counters import counters_csv, fields_of, load_counters
from gpufleet.gpu_stack.counters import CHECKSUM, CONFIG_MAP, FILE
from gpufleet.gpu_stack.model import StackPlan
from gpufleet.kube.objects import ObjectSet
from tests.unit.gpu_stack.gpu_clusters import OLD, codes, silent, stack, values

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
    return plan.counters


def test_a_chart_without_the_value_mounts_our_config_map() -> None:
    plan = stack(OLD)
    [config_map] = list_of(plan).objects
    assert list_of(plan).namespace == "monitoring"
    name = config_map["metadata"]["name"]
    assert name.startswith(f"{CONFIG_MAP}-")
    assert len(name) <= 63
    assert config_map["data"] == {FILE: counters_csv(COUNTERS, "2.6.10")}
    given = exporter(plan)
    assert given["arguments"] == ["-f", PATH]
    assert given["extraConfigMapVolumes"] == [{"name": CONFIG_MAP, "configMap": {"name": name}}]
    [mount] = given["extraVolumeMounts"]
    assert (mount["name"], mount["mountPath"]) == (CONFIG_MAP, "/etc/gpufleet")
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


def test_another_list_restarts_the_pods_of_a_chart_that_writes_it() -> None:
    plans = [stack(), stack(monitoring_counters=ALSO)]
    first, second = (exporter(plan)["podAnnotations"][CHECKSUM] for plan in plans)
    assert first != second
    assert not re.fullmatch(r"[0-9.eE+-]+", first), "YAML would read a number"


def test_each_revision_names_the_list_that_it_was_made_with() -> None:
    plans = [stack(OLD), stack(OLD, monitoring_counters=ALSO)]
    [first], [second] = (exporter(plan)["extraConfigMapVolumes"] for plan in plans)
    assert first["configMap"] != second["configMap"], "helm rollback finds the older one"
    assert exporter(stack(OLD))["extraConfigMapVolumes"] == [first]


def test_a_list_of_the_user_reaches_old_charts() -> None:
    plan = stack(OLD, monitoring_counters=ALSO)
    [config_map] = list_of(plan).objects
    assert fields_of(config_map["data"][FILE]) == fields_of(ALSO)
    assert "GF877" not in codes(plan)
    assert "GpuEccUncorrectable" not in silent(plan)
    assert "GpuPcieNarrow" in silent(plan)


@pytest.mark.parametrize(
    "settings", [{"monitoring_exporter": False}, {"cluster_stack": "gpu-operator"}]
)
def test_no_list_is_passed_without_our_exporter(settings: dict[str, Any]) -> None:
    plan = stack(OLD, **settings)
    assert list_of(plan).objects == (), "those of an earlier run go with its release"
    assert "GF897" not in codes(plan)


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
}


@pytest.mark.parametrize("facts", [{"facts": OLD}, {}], ids=["old", "new"])
@pytest.mark.parametrize("theirs", THEIRS.values(), ids=list(THEIRS))
def test_a_list_that_the_users_values_name_wins_and_what_may_be_silent_is_said(
    theirs: dict[str, Any], facts: dict[str, Any]
) -> None:
    for counters in ({}, {"monitoring_counters": ALSO}):
        plan = stack(**facts, monitoring_exporter_values=theirs, **counters)
        given = exporter(plan)
        assert {key: given[key] for key in theirs} == theirs
        assert not {"customMetrics", "podAnnotations"} & set(given)
        assert list_of(plan).objects == ()
        [found] = plan.findings
        assert found.code == "GF877"
        assert f"{next(iter(theirs))} in monitoring_exporter_values" in found.message
        assert "GpuEccUncorrectable (DCGM_FI_DEV_ECC_DBE_VOL_TOTAL)" in found.message


def test_a_volume_in_place_of_the_one_that_the_chart_mounts_is_a_list_of_the_user() -> None:
    theirs = {"extraConfigMapVolumes": [{**VOLUME, "name": "exporter-metrics-volume"}]}
    plan = stack(monitoring_exporter_values=theirs)
    assert exporter(plan)["extraConfigMapVolumes"] == theirs["extraConfigMapVolumes"]
    assert codes(plan) == {"GF877"}


def of_the_chart(file: str) -> dict[str, Any]:
    """Values of a user who copied them from the chart's values.yaml."""
    path, name = f"/etc/dcgm-exporter/{file}", "exporter-metrics-volume"
    source = {"name": "exporter-metrics-config-map", "items": [{"key": "metrics", "path": file}]}
    return {
        "extraConfigMapVolumes": [{"name": name, "configMap": source}],
        "extraVolumeMounts": [{"name": name, "mountPath": path, "subPath": file}],
        "arguments": ["-f", path],
    }


@pytest.mark.parametrize(
    ("facts", "file"),
    [({"facts": OLD}, "dcp-metrics-included.csv"), ({}, "default-counters.csv")],
    ids=["old", "new"],
)
@pytest.mark.parametrize(
    "keys",
    [
        ["extraConfigMapVolumes", "extraVolumeMounts", "arguments"],
        ["extraConfigMapVolumes", "extraVolumeMounts"],
        ["extraVolumeMounts"],
        ["arguments"],
    ],
    ids="-".join,
)
def test_values_that_repeat_the_charts_own_do_not_lose_the_list(
    facts: dict[str, Any], file: str, keys: list[str]
) -> None:
    repeated = of_the_chart(file)
    plan = stack(**facts, monitoring_exporter_values={key: repeated[key] for key in keys})
    given = exporter(plan)
    assert given["arguments"] == ["-f", PATH]
    assert [one["name"] for one in given["extraConfigMapVolumes"]] == [CONFIG_MAP]
    assert [one["name"] for one in given["extraVolumeMounts"]] == [CONFIG_MAP]
    assert silent(plan) == (UNKNOWN if facts else set())
    assert "GF877" not in codes(plan)


@pytest.mark.parametrize("facts", [{"facts": OLD}, {}], ids=["old", "new"])
@pytest.mark.parametrize("words", [["-d", "g"], ["-r", "host:5555", "-c=15000"], [], None])
def test_arguments_that_name_no_list_stay_beside_ours(
    words: list[str] | None, facts: dict[str, Any]
) -> None:
    plan = stack(**facts, monitoring_exporter_values={"arguments": words})
    assert exporter(plan)["arguments"] == [*(words or []), "-f", PATH]
    assert len(list_of(plan).objects) == 1
    assert silent(plan) == (UNKNOWN if facts else set())


@pytest.mark.parametrize(
    ("facts", "file"),
    [({"facts": OLD}, "default-counters.csv"), ({}, "dcp-metrics-included.csv")],
    ids=["old", "new"],
)
def test_another_list_of_the_image_wins_and_what_is_silent_is_said(
    facts: dict[str, Any], file: str
) -> None:
    words = [f"--collectors=/etc/dcgm-exporter/{file}"]
    plan = stack(**facts, monitoring_exporter_values={"arguments": words})
    assert exporter(plan)["arguments"] == words
    assert list_of(plan).objects == ()
    assert codes(plan) == {"GF877", "GF897"}
    assert silent(plan) > UNKNOWN


def test_the_users_value_of_the_chart_is_what_alerts_are_compared_with() -> None:
    plan = stack(monitoring_exporter_values={"customMetrics": ALSO})
    assert exporter(plan)["customMetrics"] == ALSO
    assert "GpuPcieNarrow" in silent(plan)
    none = {"monitoring_exporter_values": {"customMetrics": None}}
    assert exporter(stack(**none))["customMetrics"] is None
    assert "GpuEccUncorrectable" in silent(stack(**none)), "the chart's own list applies"
    assert "GF877" in codes(stack(**none, monitoring_counters=ALSO))


def test_the_config_map_is_where_the_chart_puts_its_pods() -> None:
    plan = stack(OLD, monitoring_exporter_values={"namespaceOverride": "gpus"})
    assert list_of(plan).namespace == "gpus"
    assert list_of(plan).path == "/api/v1/namespaces/gpus/configmaps"
