"""The results of a run as JUnit XML, and where they are written."""

from __future__ import annotations

import errno
from datetime import datetime, timedelta, timezone
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings.settings import NEAR_MISS
from gpufleet.core.stopped import Stopped
from gpufleet.run import findings, lifecycle
from gpufleet.run.invocation import Invocation
from gpufleet.run.lifecycle import ReportedRun, requested_reports
from gpufleet.run.report import HostReport, RunFacts, report_junit

START = datetime(2026, 11, 25, tzinfo=timezone.utc)
FACTS = RunFacts("inv.py", ("deploys/gpu_node.py",), START, START + timedelta(seconds=9), False, 1)


def hosts() -> list[HostReport]:
    good = HostReport("gpu-1", status="converged", seconds=2.04)
    good.findings = [NEAR_MISS(key="k", place="the inventory", meant="m")]
    bad = HostReport("gpu-\x1b[31m2", status="failed", failed=True)
    bad.findings = [findings.REPORT_LOST(path="/r", why="disk\x00 <full>")]
    bad.errors = ["E: no space\n\x1b]0;title\x07left"]
    return [good, bad, HostReport("gpu-3")]


def test_each_host_is_a_case_and_one_that_failed_a_failure() -> None:
    text = report_junit(hosts(), FACTS)
    assert "<testsuite " in text
    (suite,) = ElementTree.fromstring(text)
    assert suite.attrib["name"] == "gpufleet.gpu_node"
    counts = [suite.attrib[key] for key in ("tests", "failures", "errors", "skipped", "time")]
    assert counts == ["3", "2", "0", "0", "9.0"]
    good, bad, away = suite
    assert (good.attrib["name"], good.attrib["time"], list(good)) == ("gpu-1", "2.0", [])
    assert [case[0].attrib["message"] for case in (bad, away)] == ["failed", "not reached"]
    assert "GF002 The work" in str(bad[0].text)
    assert "<full>." in str(bad[0].text)
    assert str(bad[0].text).count("\n") == 2
    assert not any(ord(sign) < 32 for sign in text.replace("\n", ""))


def test_the_reports_of_a_run_are_written_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report, junit = tmp_path / "report.json", tmp_path / "junit.xml"
    junit.write_text("<testsuites></testsuites>")
    monkeypatch.setenv("GPUFLEET_REPORT", str(report))
    monkeypatch.setenv("GPUFLEET_JUNIT", str(junit))
    run = ReportedRun(Invocation("inv.py", ("deploys/gpu_node.py",)), files=requested_reports())
    assert not junit.exists()  # else CI would read it as this run's
    run.finish(hosts(), 1)  # type: ignore[arg-type]
    assert '"gpu-3"' in report.read_text()
    assert junit.read_text().count("<testcase") == 3
    assert {path.stat().st_mode & 0o777 for path in (report, junit)} == {0o600}


def test_results_that_cannot_be_printed_are_in_the_report_and_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*words: object, **how: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    ended: list[int] = []
    report = tmp_path / "report.json"
    monkeypatch.setenv("GPUFLEET_REPORT", str(report))
    monkeypatch.setattr(lifecycle, "show_report", full)
    monkeypatch.setattr(lifecycle, "exit_process", ended.append)
    run = ReportedRun(Invocation("inv.py", ()), files=requested_reports())
    run.finish(hosts()[:1], ExitStatus.CONVERGED)
    assert '"gpu-1"' in report.read_text()
    assert ended == [ExitStatus.FAILED]
    assert "GF002" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "my notes", '{"schema": 1, "gpufleet": "1", "hosts": {}}'])
def test_no_file_of_another_kind_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    monkeypatch.delenv("GPUFLEET_REPORT", raising=False)
    monkeypatch.setenv("GPUFLEET_JUNIT", str(path))
    if not text:
        assert len(requested_reports()) == 1
        return
    with pytest.raises(Stopped) as refused:
        requested_reports()
    (finding,) = refused.value.findings
    assert f"Cannot write the report {path}: " in finding.message
    assert "Set --junit (GPUFLEET_JUNIT) to" in finding.remedy
    assert path.read_text() == text


def test_two_reports_need_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("GPUFLEET_REPORT", "GPUFLEET_JUNIT"):
        monkeypatch.setenv(variable, str(tmp_path / "both"))
    with pytest.raises(Stopped, match="GF001"):
        requested_reports()
