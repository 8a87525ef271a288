"""Every generated runtime configuration against its golden files."""

from __future__ import annotations

import json

import pytest
from golden_cases import Case, cases

from gpufleet.formats.edits import NotUnderstood
from gpufleet.formats.toml_text import TOML
from gpufleet.toolkit.record import ChangesPart

every_case = pytest.mark.parametrize(
    "case", cases(), ids=lambda case: f"{case.runtime}-{case.folder.name}"
)


@every_case
def test_merge(case: Case) -> None:
    merged = case.merge(case.text("before"))
    assert merged.text == case.after
    assert merged.changed == (case.after != case.text("before"))
    assert [note.code for note in merged.notes] == case.settings.get("findings", [])
    if "blocked" in case.settings:
        assert merged.blocked == case.settings["blocked"]


@every_case
def test_second_merge_changes_nothing(case: Case) -> None:
    first = case.merge(case.text("before"))
    second = case.merge(first.text, first.record)
    assert not second.changed
    assert second.text == first.text
    assert second.record == first.record


@every_case
def test_removal(case: Case) -> None:
    merged = case.merge(case.text("before"))
    edited = case.text("edited") if case.text("edited") is not None else merged.text
    wanted = case.text("removed") if case.text("edited") is not None else case.text("before")
    removed = case.unmerge(edited, merged.record)
    assert removed.text == wanted
    if not merged.blocked:
        codes = [note.code for note in removed.notes]
        assert codes == case.settings.get("removal_findings", [])


@pytest.mark.parametrize(
    "case",
    [case for case in cases() if case.runtime != "docker"],
    ids=lambda case: f"{case.runtime}-{case.folder.name}",
)
def test_tables_that_hosts_share_stay_as_they_are(case: Case) -> None:
    """A parsed file is cached for the next host with the same text."""
    merged = case.merge(case.text("before"))
    again = case.merge(merged.text, merged.record)
    case.unmerge(again.text, again.record)
    for text in filter(None, (case.text("before"), merged.text)):
        try:
            fresh = TOML.parse.__wrapped__(text)  # type: ignore[attr-defined]
        except NotUnderstood:
            continue
        assert TOML.parse(text) == fresh


@every_case
def test_record_survives_json(case: Case) -> None:
    record = case.merge(case.text("before")).record
    text = json.dumps(ChangesPart.of(record).as_json())
    assert ChangesPart.model_validate(json.loads(text)).record == record


def test_there_are_cases_for_every_runtime() -> None:
    assert {case.runtime for case in cases()} == {"docker", "containerd", "crio"}
    assert len(cases()) > 40
