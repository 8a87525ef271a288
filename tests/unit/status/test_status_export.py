"""JSON is valid for its schema, and no cell of the CSV is a formula."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import gpufleet
from gpufleet.doctor.document import doctor_json
from gpufleet.doctor.fleet import ReadFleet
from gpufleet.doctor.table import choose_checks
from gpufleet.status.export import COLUMNS, as_csv, fleet_json
from gpufleet.status.groups import PROPERTIES
from gpufleet.status.models import FLAGS, FleetStatus, Row
from tests.unit.status.fleets import NOW, bare, fleet, healthy, hostile, seen, silent

FOLDER = Path(gpufleet.__file__).parent / "status"
SCHEMA = json.loads((FOLDER / "status.schema.json").read_text())
DOCTOR = json.loads((FOLDER / "doctor.schema.json").read_text())
ROOT = FOLDER.parents[1]
HOSTS = (seen("a", healthy()), seen("b", bare()), silent("c"), seen("d", bare(), driver_brunch=1))


@pytest.mark.parametrize("by", [None, *PROPERTIES])
def test_json_fits_its_schema(by: str | None) -> None:
    for found in (fleet(*HOSTS, clusters=("lab",)), hostile()):
        document = json.loads(json.dumps(fleet_json(found, NOW, by)))
        jsonschema.validate(document, SCHEMA)
        assert document["group_by"] == by
    assert document["time"] == "2026-11-25T09:46:40Z"
    bare_host = fleet_json(fleet(HOSTS[1]), NOW)["hosts"]["b"]
    assert [bare_host[key] for key in ("driver", "toolkit")] == [None, None]


def test_groups_have_the_value_that_their_hosts_share() -> None:
    groups = fleet_json(fleet(*HOSTS), NOW, "driver")["groups"]
    values = {group["value"]: group["hosts"] for group in groups}
    assert "a" in values[fleet_json(fleet(*HOSTS), NOW)["hosts"]["a"]["driver"]]
    assert "b" in values[None]


def doctor_document() -> dict[str, Any]:
    fleet = ReadFleet("prod.py", HOSTS, {"lab": None})
    return doctor_json(fleet.judge(choose_checks((), ()), NOW), NOW)


def test_the_document_of_doctor_fits_its_schema_and_has_names_as_keys() -> None:
    document = json.loads(json.dumps(doctor_document()))
    jsonschema.validate(document, DOCTOR)
    assert document["clusters"]["lab"]["verdict"] == "UNKNOWN"
    assert document["verdict"] == "CRITICAL"
    keys = {key for host in document["hosts"].values() for key in host}
    assert [key for key in keys if not key.isidentifier()] == []


@pytest.mark.parametrize("schema", [SCHEMA, DOCTOR], ids=["status", "doctor"])
def test_a_schema_refuses_what_it_does_not_know(schema: dict[str, object]) -> None:
    found = fleet(*HOSTS)
    documents = {
        id(SCHEMA): fleet_json(found, NOW),
        id(DOCTOR): doctor_document(),
    }
    document = documents[id(schema)]
    jsonschema.validate(document, schema)
    host = document["hosts"]["a"]
    for spoilt in (
        {**document, "schema": 2},
        {**document, "news": 1},
        {**document, "hosts": {"a": {**host, "flags": ["fine"]}}},
        {**document, "hosts": {"a": {**host, "other": 1}}},
        {**document, "hosts": {"a": {"reached": True}}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(spoilt, schema)


def test_the_schemas_and_the_page_have_every_flag() -> None:
    assert tuple(SCHEMA["$defs"]["flag"]["enum"]) == FLAGS
    assert tuple(DOCTOR["$defs"]["flag"]["enum"]) == FLAGS
    page = (ROOT / "docs/how-to/status.md").read_text()
    assert [flag for flag in FLAGS if f"| `{flag}` |" not in page] == []


def test_csv_has_a_line_per_host() -> None:
    lines = list(csv.DictReader(io.StringIO(as_csv(fleet(*HOSTS), NOW))))
    assert list(lines[0]) == list(COLUMNS)
    assert [line["host"] for line in lines] == ["a", "b", "c", "d"]
    assert (lines[0]["driver"], lines[0]["gpus"], lines[0]["reached"]) == (
        "580.178.04",
        "1",
        "true",
    )
    assert (lines[2]["reached"], lines[2]["codes"]) == ("false", "GF005")
    assert {line["time"] for line in lines} == {fleet_json(fleet(*HOSTS), NOW)["time"]}


def test_csv_of_groups_has_a_line_per_value() -> None:
    lines = list(csv.DictReader(io.StringIO(as_csv(fleet(*HOSTS), NOW, "os"))))
    assert [(line["os"], line["hosts"]) for line in lines] == [("ubuntu2204", "3"), ("", "1")]


@pytest.mark.parametrize("by", [None, "driver"])
def test_no_cell_is_a_formula_or_more_than_a_line(by: str | None) -> None:
    text = as_csv(hostile(), NOW, by)
    lines = list(csv.reader(io.StringIO(text)))
    assert len(lines) == len(text.splitlines()) == (3 if by else 4)
    assert [cell for line in lines for cell in line if cell.startswith(("=", "+", "-", "@"))] == []
    assert all(letter.isprintable() for line in lines for cell in line for letter in cell)


FORMULAS = (
    "=1+1", "\t=1+1", "  @SUM(1)", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20SUM(1)", "\ufe661",
    '"=1+1"', "5.15;=cmd|'/Ccalc'!A1;", "5.15; \uff0b1", '5.15;"=1+1"', "a,b;=1;@x", ";-1",
)  # fmt: skip


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_is_a_formula_whatever_separates_cells(formula: str, delimiter: str) -> None:
    rows = (Row("h1", kernel=formula, driver=formula), Row(formula, os=formula))
    lines = csv.reader(io.StringIO(as_csv(FleetStatus("inv.py", rows), NOW)), delimiter=delimiter)
    cells = [unicodedata.normalize("NFKC", cell) for line in lines for cell in line]
    assert [cell for cell in cells if cell.lstrip(' "').startswith(("=", "+", "-", "@"))] == []
    assert any("'" in cell for cell in cells)


def test_texts_without_a_formula_stay_as_they_are() -> None:
    text = "5.15;a=b, c-d; x@y"
    (_, line) = csv.reader(
        io.StringIO(as_csv(FleetStatus("inv.py", (Row("h1", kernel=text),)), NOW))
    )
    assert line[COLUMNS.index("kernel")] == text
