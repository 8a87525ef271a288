"""The output at the end of a run, and the exit status, which pyinfra would set otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding, Severity
from gpufleet.core.live import QUIET
from gpufleet.run import lifecycle
from gpufleet.run.invocation import Invocation
from gpufleet.run.lifecycle import ReportedRun
from gpufleet.run.report import HostReport, report_json

HOSTS = [HostReport("gpu-01", status="converged")]
ASKED = Invocation("inv.py", ("deploys/gpu_node.py",), limit=("gpu-9",))
FOUND, FAILED, USAGE = ExitStatus.CONVERGED, ExitStatus.FAILED, ExitStatus.USAGE
NOTHING, STOPPED = ExitStatus.NOTHING, ExitStatus.INTERRUPTED


@pytest.mark.parametrize(
    ("run", "hosts", "status", "names", "ended", "said"),
    [
        (ReportedRun(ASKED), HOSTS, FOUND, (), [], ""),
        (ReportedRun(ASKED), HOSTS, FAILED, (), [], ""),
        (ReportedRun(ASKED, interrupted=STOPPED), HOSTS, FAILED, (), [STOPPED], ""),
        (
            ReportedRun(ASKED),
            [],
            NOTHING,
            (),
            [NOTHING],
            "GF004 --limit gpu-9 matches no host of inv.py",
        ),
        (
            ReportedRun(ASKED),
            [],
            USAGE,
            ("lab",),
            [USAGE],
            "GF009 deploys/gpu_node.py applies to none",
        ),
    ],
)
def test_the_end_of_a_run(
    run: ReportedRun, hosts: list[HostReport], status: ExitStatus, names: tuple[str, ...],
    ended: list[ExitStatus], said: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    ends: list[ExitStatus] = []
    monkeypatch.setattr(lifecycle, "exit_process", ends.append)
    run.finish(hosts, status, names=names)
    printed = capsys.readouterr()
    assert ends == ended
    assert ("gpu-01" in printed.out) is bool(hosts)
    assert printed.err.startswith(said)
    assert bool(printed.err) is bool(said)


def test_a_report_that_cannot_be_written_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All other reports are written."""
    ends: list[Any] = []
    monkeypatch.setattr(lifecycle, "exit_process", ends.append)
    gone, there = tmp_path / "gone" / "a.json", tmp_path / "b.json"
    gone.parent.touch()  # a file in place of the folder
    files = [(path, report_json) for path in (gone, there)]
    ReportedRun(ASKED, files=files).finish(HOSTS, FOUND, completed=True)
    printed = capsys.readouterr()
    assert printed.err.startswith(
        f"GF002 The work is done, but its results could not be written to {gone}"
    )
    assert "gpu-01" in printed.out
    assert '"completed": true' in there.read_text()
    assert ends == [FAILED]


def test_a_number_that_json_does_not_have_loses_the_report_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends: list[Any] = []
    monkeypatch.setattr(lifecycle, "exit_process", ends.append)
    host = HostReport("gpu-01", status="converged", plan={"x": float("nan")})
    file = tmp_path / "a.json"
    ReportedRun(ASKED, files=[(file, report_json)]).finish([host], FOUND, completed=True)
    printed = capsys.readouterr()
    assert printed.err.startswith("GF002")
    assert "gpu-01" in printed.out
    assert ends == [FAILED]
    assert list(tmp_path.iterdir()) == []


INFO = Finding("GF415", Severity.INFO, "No CDI.", "Nothing.")
WARNING = Finding("GF103", Severity.WARNING, "It is old.", "Move on.")


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        (HostReport("gpu-01", status="converged", findings=[INFO], accepted=[WARNING]), False),
        (HostReport("gpu-01", status="converged", findings=[INFO, WARNING]), True),
        (HostReport("gpu-01", status="converged", needs=["reboot"]), True),
        (HostReport("gpu-01", status="changed", changed=1), True),
        (HostReport("gpu-01", status="planned", changed=1), True),
        (HostReport("gpu-01", status="failed"), True),
    ],
)
def test_a_quiet_run_prints_nothing_where_there_is_nothing_to_do(
    host: HostReport,
    shown: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(lifecycle, "exit_process", lambda status: None)
    monkeypatch.setenv(QUIET, "1")
    ReportedRun(ASKED).finish([host], FOUND)
    printed = capsys.readouterr()
    assert (bool(printed.out), printed.err) == (shown, "")
    assert INFO.code not in printed.out


def test_accepted_findings_are_counted_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lifecycle, "exit_process", lambda status: None)
    ReportedRun(ASKED).finish([HostReport("gpu-01", status="converged", accepted=[WARNING])], FOUND)
    printed = capsys.readouterr().out
    assert (WARNING.code in printed, "1 accepted finding" in printed) == (False, True)
