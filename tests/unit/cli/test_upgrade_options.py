"""Options of pyinfra behind `--` of `gpufleet upgrade`: none may make a step another one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from click.testing import CliRunner

from gpufleet.cli import main, upgrade, upgrade_options
from gpufleet.cli.upgrade_options import DEPLOY, INVENTORY, why_refused
from gpufleet.run.invocation import parse


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--dry"], "--plan"),
        (["--serial", "--limit", "a"], "--limit"),
        (["--limit=a"], "--limit"),
        (["--exclude", "a"], "--limit"),
        (["--exclude=a"], "--limit"),
        (["--data", "upgrade_soak=0"], "inventory"),
        (["--data=upgrade_soak=0"], "inventory"),
        (["--data", " upgrade_soak=0"], "inventory"),
        (["--serial", "server.shell"], "no deploy"),
        (["--serial", "deploys/remove.py"], "no deploy"),
        (["--ssh-user"], "no inventory"),  # without its value
        (["--data", "a=b", "--ssh-user=root", "--serial", "-vv"], ""),
        (["--data", "note=upgrade_soak", "--data=a=--dry"], ""),
    ],
)
def test_what_would_make_a_step_another_one_is_refused(options: Sequence[str], word: str) -> None:
    problem = why_refused(parse([*options, INVENTORY, DEPLOY]))
    assert word in problem
    assert bool(problem) == bool(word)


def test_a_start_with_such_options_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        upgrade_options, "_parsed", lambda options: parse([*options, INVENTORY, DEPLOY])
    )
    monkeypatch.setattr(upgrade, "targets_of", lambda *args: pytest.fail("it went on"))
    done = CliRunner().invoke(main, ["upgrade", "inv.py", "--yes", "--", "--dry"])
    assert done.exit_code == 2
    assert "use --plan" in done.output
