"""Results that cannot be written to standard output cause a message and a failing exit status."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gpufleet.core.exit_status import ExitStatus
from gpufleet.run import lifecycle
from gpufleet.run.report import HostReport

PROGRAM = """
import atexit
from gpufleet.core.exit_status import ExitStatus
from gpufleet.run.lifecycle import ReportedRun
from gpufleet.run.report import HostReport

hosts = [HostReport("gpu-01", status="converged")]
run = ReportedRun(interrupted={interrupted})
{ends}(lambda: run.finish(hosts, ExitStatus.CONVERGED, completed=True))
"""
AT_END = "atexit.register"  # pyinfra's process, in which SystemExit has no effect
AT_ONCE = "(lambda end: end())"  # the process that starts workers


def ended(ends: str, interrupted: str, stderr: int = subprocess.PIPE) -> tuple[int, str]:
    """Exit status and standard error of a run whose standard output is a pipe without a reader."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(ends=ends, interrupted=interrupted)],
        stdout=writer, stderr=writer if stderr == subprocess.STDOUT else stderr, text=True,
        check=False, timeout=100,
    )  # fmt: skip
    os.close(writer)
    return done.returncode, done.stderr or ""


@pytest.mark.parametrize("ends", [AT_END, AT_ONCE], ids=["at exit", "at once"])
@pytest.mark.parametrize(
    ("interrupted", "status"), [("None", 1), ("ExitStatus.INTERRUPTED", 130)], ids=str
)
def test_a_pipe_that_nobody_reads(ends: str, interrupted: str, status: int) -> None:
    code, said = ended(ends, interrupted)
    assert code == status, said
    assert said.startswith("GF002 The work is done, but its results could not be written")
    assert "Broken pipe" in said
    assert "Traceback" not in said


def test_where_nobody_reads_errors_either() -> None:
    assert ended(AT_END, "None", subprocess.STDOUT) == (1, "")


def test_where_standard_output_is_closed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends: list[int] = []
    monkeypatch.setattr(lifecycle, "exit_process", ends.append)
    monkeypatch.setattr(sys, "stdout", None)
    host = HostReport("gpu-01", status="converged")
    lifecycle.ReportedRun().finish([host], ExitStatus.CONVERGED, completed=True)
    assert ends == [ExitStatus.FAILED]
    assert "standard output: it is closed." in capsys.readouterr().err
