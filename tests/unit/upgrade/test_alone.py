"""pyinfra with deploys/upgrade_driver.py alone starts a run."""

from __future__ import annotations

import pytest

from gpufleet.run.invocation import parse
from gpufleet.upgrade.operations import alone

DEPLOY = "deploys/upgrade_driver.py"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["inv.py", DEPLOY], ["upgrade", "start", "inv.py"]),
        (["--dry", "inv.py", DEPLOY], ["upgrade", "start", "inv.py", "--plan"]),
        (
            ["-y", "--limit", "a", "--limit=b", "--data", "a=1", "inv.py", DEPLOY, "-v"],
            ["upgrade", "start", "inv.py", "--limit", "a", "--limit", "b", "--yes", "--",
             "--data", "a=1", "-v"],
        ),
        (["inv.py", "deploys/gpu_node.py", DEPLOY], []),
        (["--exclude", "a", "inv.py", DEPLOY], []),
    ],
)  # fmt: skip
def test_the_command_line_becomes_one_of_gpufleet(typed: list[str], words: list[str]) -> None:
    assert alone.run_words(parse(typed)) == words


def test_the_process_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda program, words: ran.append(words))
    monkeypatch.setattr(alone, "read_invocation", lambda: parse(["inv.py", DEPLOY]))
    alone.start_run()
    assert ran[0][-3:] == ["upgrade", "start", "inv.py"]
    assert "gpufleet.cli" in ran[0][-4]


def test_python_starts_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.execv", lambda program, words: pytest.fail("it was replaced"))
    alone.start_run()
