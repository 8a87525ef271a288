"""Progress of the checks on standard error, without pytest's letters on standard output."""

from __future__ import annotations

import io
import threading

import pytest

from gpufleet.core import live
from gpufleet.core.live import LiveProgress
from gpufleet.verify.progress import progress_line


@pytest.mark.parametrize(
    ("numbers", "line"),
    [
        ((0, 151, 0, 2.0), "Reading the hosts for 151 checks, 2 s"),
        ((1, 1, 0, 0.4), "Checked 1 of 1 check, 0 s"),
        ((34, 151, 2, 61.0), "Checked 34 of 151 checks, 61 s: 2 failed"),
    ],
)
def test_the_line(numbers: tuple[int, int, int, float], line: str) -> None:
    assert progress_line(*numbers) == line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_in_a_pipe_there_is_a_line_now_and_then_and_no_control_character(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "HEARTBEAT", 0.001)
    out, twice, beats = io.StringIO(), threading.Event(), iter(range(1, 1000))

    def beat() -> str:
        number = next(beats)
        if number > 3:
            twice.set()
        return f"line {number}" if number != 2 else ""

    shown = LiveProgress(lambda width, height: ["live"], beat, out)
    shown.start()
    assert twice.wait(10)
    shown.stop()
    shown.stop()
    ended = out.getvalue()
    assert ended.startswith("line 1\nline 3\n")
    assert all(line.isprintable() for line in ended.splitlines())
    shown.say("after")
    assert out.getvalue() == f"{ended}after\n", "no line comes after the end"


def test_on_a_terminal_lines_have_its_width_and_go_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "61")
    monkeypatch.delenv("CI", raising=False)
    out, sizes = Terminal(), list[int]()
    shown = LiveProgress(lambda width, height: sizes.append(width) or ["[b]live[/b]"], str, out)
    shown.start()
    shown.say("[i]stays[/i]")
    shown.stop()
    assert set(sizes) == {61}
    assert "[b]live[/b]" in out.getvalue(), "no markup"
    assert "[i]stays[/i]" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K"), "the live line is erased"


@pytest.mark.parametrize(
    ("variables", "terminal", "shown"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm"}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "xterm", "CI": "true"}, True, False),
    ],
)
def test_lines_are_redrawn_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], terminal: bool, shown: bool
) -> None:
    monkeypatch.delenv("CI", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert live.on_terminal(Terminal() if terminal else io.StringIO()) is shown
