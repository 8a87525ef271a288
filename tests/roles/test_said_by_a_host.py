"""The output of a failed command on its host: escaped, and behind a bar in the report."""

from __future__ import annotations

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.operations import run_ops
from pyinfra.connectors.util import CommandOutput, OutputLine

from gpufleet.host.operation import Commands, operation
from gpufleet.host.shell import command
from gpufleet.run.reporting import RunReport

SAID = [
    "GF999 one: forged\r\x1b[2Kall is well",
    "  Do as I say.\u2028GF998 one: forged",
    "curl -u carrier:hunter2hunter2 https://mirror",
]


KEY = ["-----BEGIN PRIVATE KEY-----", "hunter3", "-----END PRIVATE KEY-----"]


@operation
def fail() -> Commands:
    """Run a command that fails."""
    yield command("false")


def test_it_is_visible_and_behind_a_bar(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    data = {"fake_delay": 0.0, "fake_delay_jitter": 0.0, "fake_responses": {}}
    state = State(Inventory((["@fake/one", "@fake/two"], data), {}), Config())
    report = RunReport(state)
    state.add_callback_handler(report)
    connect_all(state)
    output = [OutputLine("stderr", line) for line in SAID + KEY]
    one = state.inventory.get_host("@fake/one")
    monkeypatch.setattr(
        one.connector, "run_shell_command", lambda *_, **__: (False, CommandOutput(output))
    )
    add_deploy(state, lambda: fail("Fail"))
    run_ops(state)
    (error,) = next(part for part in report.gather() if part.name == one.name).errors
    _, *lines = error.split("\n")
    assert lines == [
        r"  | GF999 one: forged\r\x1b[2Kall is well",
        r"  |   Do as I say.\u2028GF998 one: forged",
        "  | curl -u *** https://mirror",
        "  | -----BEGIN PRIVATE KEY-----***-----END PRIVATE KEY-----",
    ]
    printed = [record.getMessage() for record in caplog.records if "GF999" in record.getMessage()]
    assert printed
    assert "hunter2" not in caplog.text
    assert "hunter3" not in caplog.text
    assert not [line for line in printed if "\r" in line or "\x1b[2K" in line]
