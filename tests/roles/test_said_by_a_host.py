"""The output of a failed command on its host: escaped, and behind a bar in the report."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.operations import run_ops
from pyinfra.connectors.util import CommandOutput, OutputLine

from gpufleet.core.secrets import register_secret
from gpufleet.host.asking import OUTPUT_MARK
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import quote_command
from gpufleet.run.reporting import RunReport

SAID = [
    "GF999 one: forged\r\x1b[2Kall is well",
    "  Do as I say.\u2028GF998 one: forged",
    "curl -u carrier:hunter2hunter2 https://mirror",
]


@host_operation
def fail() -> Commands:
    """Run a command that fails."""
    yield quote_command("false")


def fails_with(output: list[OutputLine], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The report's error, by lines, of a command that fails on one of two hosts."""
    data = {"fake_delay": 0.0, "fake_delay_jitter": 0.0, "fake_responses": {}}
    state = State(Inventory((["@fake/one", "@fake/two"], data), {}), Config())
    report = RunReport(state)
    state.add_callback_handler(report)
    connect_all(state)
    one = state.inventory.get_host("@fake/one")
    monkeypatch.setattr(
        one.connector, "run_shell_command", lambda *_, **__: (False, CommandOutput(output))
    )
    add_deploy(state, lambda: fail("Fail"))
    run_ops(state)
    (error,) = next(part for part in report.gather() if part.name == one.name).errors
    return error.split("\n")


def test_it_is_visible_and_behind_a_bar(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    register_secret("hunter2hunter2")
    output = [OutputLine("stderr", line) for line in SAID]
    _, *lines = fails_with(output, monkeypatch)
    assert lines == [
        r"  | GF999 one: forged\r\x1b[2Kall is well",
        r"  |   Do as I say.\u2028GF998 one: forged",
        "  | curl -u carrier:*** https://mirror",
    ]
    printed = [record.getMessage() for record in caplog.records if "GF999" in record.getMessage()]
    assert printed
    assert "hunter2" not in caplog.text
    assert not [line for line in printed if "\r" in line or "\x1b[2K" in line]


def test_the_marks_around_an_answer_are_not_printed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    output = [
        OutputLine("stdout", ""),
        OutputLine("stdout", OUTPUT_MARK),
        OutputLine("stderr", "GF322 @fake/one: Packages could not be removed"),
        OutputLine("stdout", "changed /etc/a"),
        OutputLine("stderr", "  | dpkg: no space"),
        OutputLine("stdout", ""),
        OutputLine("stdout", OUTPUT_MARK),
    ]
    said = fails_with(output, monkeypatch)
    assert said == [
        "Fail",
        "  | GF322 @fake/one: Packages could not be removed",
        "  |   | dpkg: no space",
    ]
    assert OUTPUT_MARK not in caplog.text
    assert "changed /etc/a" in caplog.text
    assert "no space" in caplog.text


def test_the_code_comes_before_what_programs_printed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    said = [
        "sort: write failed: No space left",
        "",
        "GF322 @fake/one: apt failed",
        "  Free some.",
        "  | E: full",
    ]
    lines = fails_with([OutputLine("stderr", line) for line in said], monkeypatch)
    *lines, log = lines[1:]
    assert lines == ["  | GF322 @fake/one: apt failed", "  |   Free some.",
                     "  |   | sort: write failed: No space left", "  |   | E: full"]  # fmt: skip
    assert log.startswith(f"  |   See the whole output: {tmp_path}")
    shown = caplog.text
    assert shown.index("GF322") < shown.index("sort: write failed") < shown.index("E: full")


def test_a_step_that_fails_without_a_word_has_no_line_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert fails_with([], monkeypatch) == ["Fail"]
    assert fails_with([OutputLine("stderr", "  ")], monkeypatch) == ["Fail"]
