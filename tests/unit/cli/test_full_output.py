"""Standard output that is full or closed: an error without a traceback, after the page."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gpufleet.cli import diagnosis, main, status
from gpufleet.core.exit_status import ExitStatus
from gpufleet.run.findings import UNREACHABLE
from gpufleet.status.models import SeenHost
from tests.unit.status.fleets import healthy, seen

WHY = "No space left on device"
HOSTS = [seen("gpu-01", healthy()), seen("gpu-02", healthy())]


class Full:
    """A stream like /dev/full: write() fails at once, or flush() fails if `late` is set."""

    encoding, errors = "utf-8", "strict"

    def __init__(self, *, late: bool) -> None:
        self.late = late

    def write(self, text: str) -> int:
        if text and not self.late:
            raise OSError(errno.ENOSPC, WHY)
        return len(text)

    def flush(self) -> None:
        if self.late:
            raise OSError(errno.ENOSPC, WHY)

    def isatty(self) -> bool:
        return False


def ends(
    words: list[str], monkeypatch: pytest.MonkeyPatch, hosts: Sequence[SeenHost] = HOSTS
) -> Any:
    for module in (status, diagnosis):
        monkeypatch.setattr(
            module, "read_hosts_and_clusters", lambda *words, **more: ([*hosts], [])
        )
    with pytest.raises(SystemExit) as ended:
        main.main(words)
    return ended.value.code


@pytest.mark.parametrize("words", [[], ["--json"], ["--csv"], ["--group-by", "os"], ["--drift"]])
@pytest.mark.parametrize(
    "stdout", [Full(late=False), Full(late=True)], ids=["full", "full at the end"]
)
def test_status_writes_its_page_and_says_why_nothing_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    stdout: Full, words: list[str],
) -> None:  # fmt: skip
    page = tmp_path / "fleet.html"
    monkeypatch.setattr(sys, "stdout", stdout)
    assert ends(["status", "inv.py", *words, "--html", str(page)], monkeypatch) == 1
    assert capsys.readouterr().err == f"Error: cannot write to standard output: {WHY}\n"
    assert "gpu-[01-02]" in page.read_text()


@pytest.mark.parametrize("words", [[], ["--json"]])
@pytest.mark.parametrize("stdout", [Full(late=False), Full(late=True)])
def test_doctor_says_why_nothing_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    stdout: Full, words: list[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "stdout", stdout)
    assert ends(["doctor", "inv.py", *words], monkeypatch) == 1
    assert "Error: cannot write to standard output" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--json"]])
@pytest.mark.parametrize("late", [False, True])
def test_a_verdict_that_cannot_be_printed_is_in_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, words: list[str], late: bool
) -> None:
    monkeypatch.setattr(sys, "stdout", Full(late=late))
    unknown = SeenHost("gpu-01", problem=UNREACHABLE(host="gpu-01", cause="no route"))
    assert ends(["doctor", "inv.py", *words], monkeypatch, [unknown]) == ExitStatus.CRITICAL


OTHERS = [
    ["--help"],
    ["--version"],
    ["catalog", "distributions"],
    ["completion", "bash"],
    ["explain", "GF203"],
    ["upgrade", "start", "--help"],
]


@pytest.mark.parametrize("words", OTHERS, ids=" ".join)
@pytest.mark.parametrize("stdout", [Full(late=False), Full(late=True)], ids=["full", "late"])
def test_every_command_says_why_nothing_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    stdout: Full, words: list[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "stdout", stdout)
    assert ends(words, monkeypatch) == 1
    assert capsys.readouterr().err == f"Error: cannot write to standard output: {WHY}\n"


def test_a_reader_that_has_gone_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Gone(Full):
        def flush(self) -> None:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(sys, "stdout", Gone(late=True))
    assert ends(["explain", "GF203"], monkeypatch) == 1  # the text is still in the buffer
    assert capsys.readouterr().err == ""


def test_another_error_stays_what_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(*words: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(status, "read_hosts_and_clusters", breaks)
    with pytest.raises(OSError, match="Input/output error"):
        main.main(["status", "inv.py"])
    assert "standard output" not in capsys.readouterr().err


@pytest.mark.parametrize("words", [["status", "inv.py"], ["apply", "inv.py"], ["catalog"]])
def test_no_command_runs_where_standard_output_is_closed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as ended:
        main.main(words)
    assert ended.value.code == ExitStatus.USAGE
    assert capsys.readouterr().err.startswith("Error: standard output is closed.")
