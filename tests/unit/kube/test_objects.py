"""Objects outside releases, and the ConfigMaps of dashboards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpufleet.kube.objects import ObjectChange, ObjectSet, is_our_object, object_changes
from gpufleet.monitoring.dashboards import DASHBOARDS_FOLDER, plan_dashboards
from gpufleet.monitoring.models import load_grafana
from gpufleet.monitoring.settings import MonitoringSettings

PATH = "/api/v1/namespaces/here/configmaps"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def as_served(body: dict[str, Any]) -> dict[str, Any]:
    """An item of a list in the API server's response."""
    metadata = {**body["metadata"], "uid": "1", "managedFields": [{"manager": "gpufleet"}]}
    return {"metadata": metadata, "data": body["data"]}


WANTED = ObjectSet("here", PATH, "part", (config_map("a", x="1"), config_map("b", x="1")))
LIVE = [as_served(dict(body)) for body in WANTED.labelled().values()]


def test_unchanged_objects_are_not_written() -> None:
    assert object_changes(WANTED, LIVE) == ()


def test_missing_objects_are_created_and_extra_ones_deleted() -> None:
    left_over = as_served(config_map("old"))
    found = object_changes(WANTED, [LIVE[0], left_over])
    assert [str(change) for change in found] == ["create b", "delete old"]
    assert found[0].body["metadata"]["namespace"] == "here"
    assert WANTED.selector == (
        "app.kubernetes.io/managed-by=gpufleet,app.kubernetes.io/component=part"
    )


@pytest.mark.parametrize(
    ("other", "fields"),
    [
        ({"data": {"x": "2"}}, "data.x"),
        ({"data": {}}, "data.x"),
        (
            {"metadata": {"name": "a", "labels": {}}},
            'metadata.labels."app.kubernetes.io/component"',
        ),
    ],
    ids=["value", "key", "labels"],
)  # fmt: skip
def test_different_objects_are_updated_and_name_their_fields(
    other: dict[str, Any], fields: str
) -> None:
    (found,) = object_changes(WANTED, [{**LIVE[0], **other}, LIVE[1]])
    assert str(found).startswith(f"change a: {fields}")


def test_the_fields_of_a_large_change_are_counted() -> None:
    fields = tuple(f"data.{number}" for number in range(8))
    assert str(ObjectChange("change", "a", {}, fields)) == (
        "change a: data.0, data.1, data.2, data.3, data.4, 3 more"
    )


def test_an_object_without_our_label_and_fields_is_not_ours() -> None:
    assert not is_our_object(config_map("a"))
    assert not is_our_object({"metadata": {"name": "a", "managedFields": [{"manager": "kubectl"}]}})
    assert is_our_object(LIVE[0])
    unlabelled = {"metadata": {"name": "a", "managedFields": [{"manager": "gpufleet"}]}}
    assert is_our_object(unlabelled), "its label was removed"


def test_a_list_of_another_length_differs() -> None:
    body = {"metadata": {"name": "r"}, "spec": {"groups": [{"name": "one"}]}}
    rules = ObjectSet("here", PATH, "rules", (body,))
    [live] = rules.labelled().values()
    assert object_changes(rules, [live]) == ()
    more = {**live, "spec": {"groups": [{"name": "one"}, {"name": "two"}]}}
    assert [change.action for change in object_changes(rules, [more])] == ["change"]
    with_default = {**live, "spec": {"groups": [{"name": "one", "interval": "30s"}]}}
    assert object_changes(rules, [with_default]) == ()


def dashboards(grafana: bool = True, **settings: Any) -> ObjectSet:
    found, findings = plan_dashboards(MonitoringSettings(**settings), {} if grafana else None)
    assert findings == []
    return found


def test_every_dashboard_becomes_a_config_map_that_the_sidecar_finds() -> None:
    found = dashboards().labelled()
    names = [f"gpufleet-dashboard-{path.stem}" for path in sorted(DASHBOARDS_FOLDER.glob("*.json"))]
    assert list(found) == names
    assert len(names) == 5
    sidecar = load_grafana().sidecar
    for body in found.values():
        assert body["metadata"]["labels"][sidecar.label] == sidecar.value
        assert body["metadata"]["annotations"] == {sidecar.folder: "GPU"}
        [(key, text)] = body["data"].items()
        assert key.endswith(".json")
        assert json.loads(text)["uid"].startswith("gpufleet-")
        assert len(text) < load_grafana().largest / 10, "far from the limit"


@pytest.mark.parametrize(
    ("grafana", "wanted", "number"),
    [(True, "auto", 5), (False, "auto", 0), (False, True, 5), (True, False, 0)],
)
def test_when_dashboards_are_loaded(grafana: bool, wanted: str | bool, number: int) -> None:
    assert len(dashboards(grafana, dashboards=wanted).objects) == number
    assert dashboards(grafana, dashboards=wanted, enabled=False).objects == ()


def test_another_sidecar_gets_its_labels() -> None:
    [first, *_] = dashboards(dashboard_labels={"load": "me"}, dashboard_folder="AI").objects
    assert first["metadata"]["labels"] == {"load": "me"}
    assert list(first["metadata"]["annotations"].values()) == ["AI"]


def test_one_that_is_too_large_for_a_config_map_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpufleet.monitoring.dashboards.DASHBOARDS_FOLDER", tmp_path)
    (tmp_path / "big.json").write_text(json.dumps({"title": "x" * load_grafana().largest}))
    _, findings = plan_dashboards(MonitoringSettings(), True)
    assert [(found.code, found.blocks) for found in findings] == [("GF895", True)]
    assert "big.json" in findings[0].message
