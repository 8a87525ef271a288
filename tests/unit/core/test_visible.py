"""Text from hosts and users cannot look like a line of gpufleet, nor move a terminal's cursor."""

from __future__ import annotations

import io
import json
import string
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from gpufleet.core.findings import KNOWN_KINDS, Kind
from gpufleet.core.masks import file_difference
from gpufleet.core.visible import BAR, Lines, one_line
from gpufleet.helm.chart_values import values_diff
from gpufleet.host import findings as host
from gpufleet.host.lock import holder_name
from gpufleet.host.shell import script_file
from gpufleet.run.report import HostReport
from gpufleet.run.report_table import show_report
from gpufleet.verify.report import CheckResult, Report
from scripts.finding_codes import finding_modules

finding_modules()
BREAKS = ("\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029")
FORGED = "GF999 blocker"
HOSTILE = "x" + "".join(f"{line}{FORGED}" for line in BREAKS) + "\x1b[2J\x07\x9b\u202e\udc80"


def fields(kind: Kind) -> set[str]:
    texts = (kind.message, kind.remedy)
    found = {name for text in texts for _, name, _, _ in string.Formatter().parse(text)}
    return {name for name in found if name}


def numbers(kind: Kind) -> set[str]:
    parsed = [
        part for text in (kind.message, kind.remedy) for part in string.Formatter().parse(text)
    ]
    return {name for _, name, form, _ in parsed if name and form}


def no_forgery(text: str) -> None:
    assert not [line for line in text.splitlines() if line.lstrip().startswith(FORGED)], text
    assert not [letter for letter in text if not letter.isprintable() and letter != "\n"], text
    text.encode()


def test_no_detail_of_any_finding_is_a_second_finding() -> None:
    for kind in KNOWN_KINDS.values():
        details: dict[str, Any] = dict.fromkeys(fields(kind), HOSTILE)
        finding = kind(**(details | dict.fromkeys(numbers(kind), 1)))
        no_forgery(str(finding))


@given(st.text())
def test_a_value_is_one_line_that_prints(text: str) -> None:
    shown = one_line(text)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    assert not text.isprintable() or shown == text


def test_several_lines_stand_behind_a_bar() -> None:
    finding = host.FACTS_UNREADABLE(
        host="gpu-01", doing="now", problem=Lines(f"one\n{FORGED}: two\r\x1b[2J\n")
    )
    _, *rest = str(finding).split("\n")
    assert rest[:2] == [f"{BAR}one", rf"{BAR}{FORGED}: two\r\x1b[2J."]
    assert not rest[2].startswith(BAR), "the remedy is our own"
    assert (
        "\n"
        not in host.FACTS_UNREADABLE(host="gpu-01", doing="now", problem=Lines("one\n")).message
    )


def hostile_report() -> HostReport:
    return HostReport(
        "gpu-01",
        status="failed",
        roles={
            "driver": {"before": HOSTILE, "after": None},
            "toolkit": {"before": HOSTILE, "after": HOSTILE},
        },
        runtimes={HOSTILE: HOSTILE},
        needs=[HOSTILE],
        findings=[host.FACTS_UNREADABLE(host="gpu-01", doing=HOSTILE, problem=HOSTILE)],
        errors=["a step\r\x1b[2J\u2028" + FORGED],
        plan={"steps": ["a step\r\x1b[2J\u2028" + FORGED]},
    )


@pytest.mark.parametrize("kind", ["node", "cluster"])
def test_no_value_in_the_tables_is_a_line_of_ours(kind: Any) -> None:
    part = hostile_report()
    part.kind, part.releases = kind, {HOSTILE: {"before": HOSTILE, "after": "1"}}
    out = io.StringIO()
    show_report(Console(file=out, width=20_000), [part], dry=True)
    text = out.getvalue()
    assert FORGED in text
    no_forgery(text)


@pytest.mark.parametrize("name", ["x.conf", "x.json"])
def test_no_line_of_a_difference_is_ours(name: str) -> None:
    values = {
        "name": "a\u2028" + FORGED,
        f"k\r{FORGED}": HOSTILE.encode("utf-8", "replace").decode(),
    }
    text = (
        json.dumps(values, ensure_ascii=False) if name.endswith("json") else f"a\r{FORGED}\x1b[2J"
    )
    for shown in (file_difference(f"/etc/{name}", "", text), values_diff({}, values, "a", "b")):
        for line in shown:
            no_forgery(line)
            assert len(line.splitlines()) == 1


def test_the_other_places() -> None:
    no_forgery(holder_name(HOSTILE))
    report = Report({"h": {"c": CheckResult("skipped", None, HOSTILE)}})
    no_forgery(report.table())


def test_a_scripts_message_is_apart_from_program_output() -> None:
    source = script_file("host/prelude").read_text() + 'fail "$@"'
    words = ["sh", "-c", source, "x", "ours\n  ours too", f"{FORGED}\nsecond", "third"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines == [
        "ours",
        "  ours too",
        *(f"{BAR}{said}" for said in (FORGED, "second", "third")),
    ]
