"""Output of programs in messages: short and on one line. A private log has all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufleet.core.quoting import (
    MAX_QUOTED_LINES,
    keep_output,
    output_folder,
    quote_field,
    quote_last_line,
    quote_lines,
)
from gpufleet.core.secrets import register_secret


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_a_field_is_one_short_line() -> None:
    assert quote_field("a\n  b\tc\x1b[31m") == "a b c\\x1b[31m"
    assert quote_field("word " * 100, 12) == "word word w…"


def test_the_last_line_of_an_output() -> None:
    assert quote_last_line("E: first\nE: last\n\n") == "E: last"
    assert quote_last_line("\n") == ""


def test_no_part_of_a_secret_is_left_where_a_line_is_cut() -> None:
    register_secret("hunter2hunter2")
    assert "hunter" not in quote_field("x" * 6 + "hunter2hunter2", 12)
    assert "hunter" not in quote_last_line("a\n" + "x" * 6 + "hunter2hunter2", 12)


def test_a_short_output_is_shown_whole() -> None:
    assert quote_lines("host", ["  a", "b\x07"]) == ["  a", "b\\x07"]


def test_of_a_long_output_the_end_is_shown_and_the_whole_kept() -> None:
    register_secret("hunter2hunter2")
    lines = [f"line {number}" for number in range(MAX_QUOTED_LINES + 5)] + ["hunter2hunter2"]
    first, *shown = quote_lines("gpu/01", lines)
    (log,) = output_folder().iterdir()
    assert first == f"(6 lines left out; the whole output: {log})"
    assert shown == [*lines[6:-1], "***"]
    assert log.read_text().splitlines() == [*lines[:-1], "***"]
    assert log.stat().st_mode & 0o077 == 0


def test_old_outputs_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpufleet.core.quoting.MAX_LOGS", 2)
    for number in range(4):
        keep_output("host", [str(number)])
    assert [path.read_text() for path in sorted(output_folder().iterdir())] == ["2\n", "3\n"]


def test_an_output_that_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "gpufleet").write_text("")
    assert keep_output("host", ["a"]).startswith("the whole output cannot be kept: ")
