"""Progress on a terminal that closes: the progress ends and the work continues."""

from __future__ import annotations

import errno
import io
import os
import pty
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from gpufleet.core import live
from gpufleet.core.live import QUIET, LiveProgress, on_terminal


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (QUIET, "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def terminal() -> Iterator[tuple[int, io.TextIOWrapper]]:
    """Both ends of a pseudo-terminal. The test closes the first one."""
    reader, writer = pty.openpty()
    stream = os.fdopen(writer, "w")
    yield reader, stream
    with suppress(OSError):  # closing flushes text that cannot be written
        stream.close()


def test_a_terminal_that_goes_away_ends_the_progress_alone(
    terminal: tuple[int, io.TextIOWrapper],
) -> None:
    reader, stream = terminal
    shown = LiveProgress(lambda width, height: ["at work"], lambda: "", stream)
    assert shown.terminal
    shown.start()
    while b"at work" not in os.read(reader, 4096):
        pass
    os.close(reader)
    for _ in range(2):
        shown.say("changed")
    shown.stop()


class Broken(io.StringIO):
    """A pipe whose reader is gone."""

    def write(self, text: str) -> int:
        raise OSError(errno.EPIPE, "Broken pipe")


def test_a_pipe_without_a_reader_gets_no_more_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "HEARTBEAT", 0.001)
    beaten = threading.Event()

    def beat() -> str:
        beaten.set()
        return "still here"

    shown = LiveProgress(lambda width, height: [], beat, Broken())
    shown.start()
    assert beaten.wait(30)
    shown.say("changed")
    shown.stop()


def test_without_standard_error_nothing_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`2>&-` closes standard error. The progress must not move to standard output."""
    monkeypatch.setattr(sys, "stderr", None)
    assert not on_terminal()
    shown = LiveProgress(lambda width, height: [], lambda: "")
    shown.start()
    shown.say("changed")
    shown.stop()
    assert capsys.readouterr().out == ""
