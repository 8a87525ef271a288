"""Every query of every dashboard, on a real Prometheus that holds a fleet of 64 GPUs."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from dashboards import ALL, FOLDER
from dashboards.fields import FIELDS, UTILISATION
from dashboards.fleet import REPORTING
from dashboards.model import Dashboard
from gpufleet.exporter.counters import counters_csv, fields_of, load_counters
from tests.monitoring.conftest import Prometheus
from tests.monitoring.fleet import CLUSTER, END, NODES, OTHER_CLUSTER
from tests.monitoring.fleet_rows import Choice
from tests.monitoring.shipped import filled_in


def options(fleet_server: Prometheus, variable: dict[str, Any], choice: Choice) -> set[str]:
    """The options that Grafana offers for a variable, by label_values or query_result."""
    kind, inner = re.fullmatch(r"(\w+)\((.*)\)", variable["query"]["query"]).groups()  # type: ignore[union-attr]
    inner = filled_in(inner, choice)
    if kind == "label_values":
        selector, _, label = inner.rpartition(", ")
        times = {"start": str(END - 3600), "end": str(END)}
        return set(fleet_server.get(f"label/{label}/values", **{"match[]": selector}, **times))
    assert kind == "query_result"
    lines = []
    for found in fleet_server.query(inner, at=END):
        labels = ",".join(f'{name}="{value}"' for name, value in sorted(found["metric"].items()))
        lines.append(f"{{{labels}}} {found['value'][1]} {END}000")
    pattern = variable["regex"].strip("/")
    return {found[1] for line in lines if (found := re.search(pattern, line))}


@pytest.mark.claim("The variables of the dashboards offer what exists.", level=6)
@pytest.mark.parametrize("dashboard", ALL, ids=[dashboard.name for dashboard in ALL])
def test_a_variable_offers_what_there_is(fleet_server: Prometheus, dashboard: Dashboard) -> None:
    committed = json.loads((FOLDER / f"{dashboard.name}.json").read_text())
    found = {part["name"]: part for part in committed["templating"]["list"]}
    assert found.pop("datasource")["query"] == "prometheus"
    assert list(found) == list(dashboard.variables)
    wanted = {
        "cluster": {CLUSTER, OTHER_CLUSTER},
        "node": {node.name for node in NODES},
        "gpu": {str(number) for number in range(8)},
        "namespace": {"research", "inference", "batch"},
    }
    for name, variable in found.items():
        assert options(fleet_server, variable, Choice()) == wanted[name], name


def test_a_gpu_in_mig_mode_is_offered_and_counted_without_utilisation() -> None:
    for path in FOLDER.glob("*.json"):
        for variable in json.loads(path.read_text())["templating"]["list"]:
            assert UTILISATION not in str(variable), path.name
    assert UTILISATION not in REPORTING


def test_no_panel_asks_for_a_field_that_is_not_listed() -> None:
    asked = set()
    for path in FOLDER.glob("*.json"):
        asked |= set(re.findall(r"DCGM_\w+", path.read_text()))
    assert asked - FIELDS == set()
    assert FIELDS - asked == set(), "listed, and shown nowhere"


@pytest.mark.parametrize("version", ["3.4.0", "4.0.1", "4.5.3", "4.8.2", "4.8.4"])
def test_every_field_is_collected(version: str) -> None:
    """By our list wherever there is one; the exporter's own lacks nothing but profiling."""
    catalog = load_counters()
    assert fields_of(counters_csv(catalog, version, ["Hopper"]) or "") >= FIELDS
    lacking = FIELDS - set(catalog.builtin.fields)
    assert all(field.startswith("DCGM_FI_PROF_") for field in lacking), lacking


def test_the_committed_files_are_what_the_code_makes(tmp_path: Path) -> None:
    pytest.importorskip("grafana_foundation_sdk", reason="Grafana's SDK needs Python 3.11")
    from dashboards.__main__ import files, stale, write

    assert stale(FOLDER) == []
    written = write(tmp_path)
    assert written == sorted(files())
    assert write(tmp_path) == []
    (tmp_path / "left-over.json").write_text("{}")
    (tmp_path / written[0]).write_text("{}")
    assert stale(tmp_path) == sorted(["left-over.json", written[0]])
    write(tmp_path)
    assert stale(tmp_path) == []


def test_titles_and_numbers_are_unique_and_nothing_overlaps() -> None:
    uids = set()
    for path in FOLDER.glob("*.json"):
        found = json.loads(path.read_text())
        uids.add(found["uid"])
        titles = [part["title"] for part in found["panels"]]
        assert len(set(titles)) == len(titles)
        assert [part["id"] for part in found["panels"]] == list(range(1, len(titles) + 1))
        taken: set[tuple[int, int]] = set()
        for part in found["panels"]:
            place = part["gridPos"]
            cells = {
                (place["x"] + x, place["y"] + y)
                for x in range(place["w"])
                for y in range(place["h"])
            }
            assert not cells & taken, part["title"]
            assert max(x for x, _ in cells) < 24
            taken |= cells
    assert len(uids) == len(ALL)


def test_the_pictures_are_drawn_from_the_data(fleet_server: Prometheus, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib's pinned version needs Python 3.11")
    from PIL import Image, ImageChops, ImageStat

    from scripts.draw_dashboards import PICTURES, pictures

    (tmp_path / "fleet.json").write_text((FOLDER / "fleet.json").read_text())
    [(name, drawn)] = pictures(fleet_server, tmp_path).items()
    here, there = (Image.open(BytesIO(found)) for found in (drawn, (PICTURES / name).read_bytes()))
    difference = ImageChops.difference(here.convert("L"), there.convert("L"))
    assert ImageStat.Stat(difference).mean[0] < 1, "make pictures"  # of 255; fonts may differ
    committed = {path.name: path.stat().st_size for path in PICTURES.glob("dashboard-*.png")}
    assert set(committed) == {f"dashboard-{dashboard.name}.png" for dashboard in ALL}
    assert max(committed.values()) < 100_000


def test_the_page_names_dashboards_and_panels_that_there_are() -> None:
    docs = FOLDER.parents[2] / "docs"
    names = ("how-to/monitoring.md", "reference/metrics.md")
    page = "".join((docs / name).read_text() for name in names)
    there = {board.title: {p.title for row in board.rows for p in row.panels} for board in ALL}
    named = re.findall(r"\*(GPU [a-z ]+)\*: ([^|;(]+)", page)
    assert len(named) > 30
    for board, panel in named:
        assert panel.strip() in there[board], f"{board}: {panel}"
    assert set(re.findall(r"^\| \*(.+)\* \|", page, re.M)) == set(there)
