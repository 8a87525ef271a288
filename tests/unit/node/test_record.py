"""Records on hosts: valid ones are read, invalid ones are rejected, nothing is guessed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpufleet.driver.record import DriverEntry
from gpufleet.exporter.models import ExporterEntry
from gpufleet.facts.files import RECORD_PATH, parse_provenance
from gpufleet.facts.model import ManagedFile, NodeFacts
from gpufleet.facts.record import read_record
from gpufleet.node.host_checks import check_record
from gpufleet.node.record_merge import merge_record
from gpufleet.role.listing import node_roles
from gpufleet.role.result import RoleResult
from gpufleet.toolkit.record import ToolkitEntry
from tests.unit.hosts import bare_host

ENTRIES = [role.entry for role in node_roles()]
ROOT = Path(__file__).resolve().parents[3]
RECORDS = sorted((Path(__file__).parent / "records").glob("*.json"))
every_record = pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)


def host(content: str) -> NodeFacts:
    """A host with this record."""
    record, trouble = parse_provenance(ManagedFile(RECORD_PATH, content))
    file = ManagedFile(RECORD_PATH, content, error=trouble)
    return replace(bare_host(), provenance=record, files={RECORD_PATH: file})


def problems(record: dict[str, Any]) -> list[str]:
    return [str(finding) for finding in check_record(host(json.dumps(record)))]


@every_record
def test_a_record_of_a_host_is_written_as_it_was_read(path: Path) -> None:
    text = path.read_text()
    record = read_record(text)
    assert record.trouble(ENTRIES) is None
    assert json.dumps(record.as_json(), indent=2, sort_keys=True) + "\n" == text
    for kind in ENTRIES:
        assert record.entry(kind).as_json() == json.loads(text).get(kind.role, {})
    assert check_record(host(text)) == []


@every_record
def test_what_a_record_says(path: Path) -> None:
    record = read_record(path.read_text())
    assert record.entry(DriverEntry).load == ["nvidia", "nvidia_uvm"]
    assert record.entry(DriverEntry).prerequisites == ["i2c_core", "ipmi_msghandler"]
    assert record.entry(ToolkitEntry).cdi.created
    changes = record.entry(ToolkitEntry).runtimes["containerd"].changes
    assert changes
    assert [edit.path[-1] for edit in changes.record.edits] == ["runc", "nvidia"]
    assert record.entry(ExporterEntry).versions == {"4.8.3.002", "4.6.0"}
    assert len(record.files) == 7


@every_record
def test_a_run_that_learns_the_same_changes_nothing(path: Path) -> None:
    record = read_record(path.read_text())
    for entry in filter(lambda entry: entry.exists, map(record.entry, ENTRIES)):
        learned = RoleResult(entry, {}, None)
        assert merge_record(record.as_json(), learned.as_json(), "now") is None


def test_keys_of_others_survive() -> None:
    entry = {"version": "580.159.03", "note": {"of": ["ours"]}}
    record = read_record(json.dumps({"driver": entry, "site": [1, None], "fabric": {"version": 2}}))
    assert record.trouble(ENTRIES) is None
    merged = merge_record(record.as_json(), {"exporter": {"version": "4"}, "files": {}}, "now")
    assert merged
    assert (merged["driver"], merged["site"]) == (entry, [1, None])
    assert merged["fabric"] == {"version": 2}


def test_a_record_without_a_number_is_of_the_first_schema() -> None:
    record = read_record('{"driver": {"version": "1"}}')
    assert record.schema_ == 1
    assert record.as_json() == {"driver": {"version": "1"}}


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"schema": 2}, "its schema is 2, and this version of gpufleet knows 1"),
        ({"schema": "x"}, "its schema is x"),
        ({"schema": -(10**11)}, "its schema is -100000000000"),
        ({"schema": 0}, "its schema is 0"),
        ({"schema": True}, "its schema is True"),
        ({"files": {"/etc/a": None}}, "files./etc/a: "),
        ({"driver": 5}, "driver: "),
        ({"driver": ""}, "driver: "),
        ({"driver": {"version": 580}}, "driver.version: "),
        ({"driver": {"load": "nvidia"}}, "driver.load: "),
        ({"exporter": {"packages": ["a"]}}, "exporter.packages: "),
        ({"exporter": {"units": {}}}, "exporter.units: "),
        ({"toolkit": {"runtimes": {"docker": {"changes": {"edits": 1}}}}}, "toolkit.runtimes.doc"),
        ({"toolkit": {"cdi": {"created": "yes"}}}, "toolkit.cdi.created: "),
        ({"toolkit": {"pending": {"docker.service": []}}}, "toolkit.pending.docker.service: "),
    ],
)
def test_a_record_that_cannot_be_used_is_a_finding(record: dict[str, Any], problem: str) -> None:
    (reported,) = problems(record)
    assert reported.startswith("GF557 ")
    assert problem in reported


def test_what_hosts_have_without_a_role_is_no_trouble() -> None:
    assert problems({}) == problems({"exporter": None, "driver": {}}) == []


def test_no_module_reads_a_record_without_its_type() -> None:
    untyped = re.compile(r"provenance\s+or\s+\{\}|\.provenance\)?\s*(\.get\(|\[)")
    sources = [path for folder in ("gpufleet", "roles") for path in (ROOT / folder).rglob("*.py")]
    verify = ROOT / "gpufleet/verify"  # the checks read it on their own
    found = [
        str(path.relative_to(ROOT))
        for path in sources
        if verify not in path.parents and untyped.search(path.read_text())
    ]
    assert found == []
    assert untyped.search('(facts.provenance or {}).get("driver")')
