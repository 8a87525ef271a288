"""accepted_findings: the values it accepts, the findings it hides, and when it expires."""

from __future__ import annotations

from datetime import date

import pytest

from gpufleet.core.accepted import accepted_of, split_accepted
from gpufleet.core.findings import KNOWN_KINDS, Finding, Severity
from gpufleet.node.settings import settings_problems
from gpufleet.run.report import HostReport

TODAY = date(2027, 3, 31)
OLD = Finding("GF103", Severity.WARNING, "It is old.", "Move on.")
DATA = {"accepted_findings": {"GF103": "until 2027-03-31, OPS-12"}}


@pytest.mark.parametrize("groups", [("gpu_nodes",), ("gpu_cluster",)])
@pytest.mark.parametrize(
    "value",
    [
        {"GF103": "tomorrow"},
        {"GF103": "until 31.03.2027"},
        {"GF103": "until 2027-02-30"},
        {"GF103": "until 2027-03-31 OPS-12"},
        {"GF103": 2027},
        {"GF000": "until 2027-03-31"},
        {"GF112": "until 2027-03-31"},  # a blocker
        ["GF103"],
    ],
)
def test_what_is_no_acceptance_is_a_finding(groups: tuple[str, ...], value: object) -> None:
    (found,) = settings_problems(groups, {"accepted_findings": value})
    assert (found.code, found.blocks, "accepted_findings" in found.message) == ("GF202", True, True)


def test_every_entry_that_is_none_is_named_at_once() -> None:
    day = "until 2027-03-31"
    value = {"GF103": day, "GF000": day, 104: day, "GF112": day, "GF104": "tomorrow", "GF117": 2027}
    (found,) = settings_problems(("gpu_nodes",), {"accepted_findings": value})
    for said in ("'GF000'", "has 104,", "GF112", "'tomorrow'", "has 2027,"):
        assert said in found.message


@pytest.mark.parametrize("value", ["until 2027-03-31", "until 2027-03-31, OPS-12, and more"])
def test_what_is_one_is_not(value: str) -> None:
    assert KNOWN_KINDS["GF112"].severity is Severity.BLOCKER
    assert settings_problems(("gpu_nodes",), {"accepted_findings": {"GF103": value}}) == []


def test_a_misspelt_key_is_found() -> None:
    (found,) = settings_problems(("gpu_nodes",), {"acepted_findings": {}})
    assert (found.code, "accepted_findings" in found.remedy) == ("GF201", True)


def test_it_is_hidden_until_the_day_and_then_shown_with_a_word() -> None:
    accepted = accepted_of(DATA)
    assert split_accepted([OLD], accepted, TODAY) == ([], [OLD])
    (shown,), hidden = split_accepted([OLD], accepted, date(2027, 4, 1))
    assert hidden == []
    assert "OPS-12" in shown.remedy
    assert shown.message == OLD.message


def test_a_blocker_and_other_codes_are_always_shown() -> None:
    worse = Finding("GF103", Severity.BLOCKER, "It is old.", "Move on.")
    other = Finding("GF104", Severity.INFO, "It is near.", "Wait.")
    found = split_accepted([worse, other], accepted_of(DATA), TODAY)
    assert found == ([worse, other], [])


def test_the_report_lists_it_apart_and_keeps_it_through_a_part() -> None:
    host = HostReport("gpu-01", status="converged", findings=[OLD])
    assert not host.is_silent
    host.hide_accepted({"accepted_findings": {"GF103": "until 9999-12-31"}})
    assert (host.findings, host.accepted, host.is_silent) == ([], [OLD], True)
    assert [each["code"] for each in host.as_dict()["accepted"]] == ["GF103"]
    assert HostReport.from_dict("gpu-01", host.as_dict()).accepted == [OLD]


def test_a_list_is_refused_with_an_example() -> None:
    (found,) = settings_problems(("gpu_nodes",), {"accepted_findings": ["GF103"]})
    assert '{"GF103": "until 2027-03-31, OPS-12"}' in found.message
