"""Options of pyinfra behind `--` of `gpufleet upgrade`: none may make a step another one."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from gpufleet.cli import main, upgrade

CASES = (
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
)
JUDGED = """\
import json, sys
from gpufleet.cli.upgrade_options import DEPLOY, INVENTORY, why_refused
from gpufleet.run.invocation import parse
asked = [parse([*words, INVENTORY, DEPLOY]) for words in json.load(sys.stdin)]
print(json.dumps([why_refused(each) for each in asked]))
"""


def test_what_would_make_a_step_another_one_is_refused() -> None:
    """In a process of its own: pyinfra's parser makes gevent replace parts of the library."""
    asked = json.dumps([options for options, _ in CASES])
    words = [sys.executable, "-c", JUDGED]
    done = subprocess.run(words, input=asked, capture_output=True, text=True, check=True)
    for (options, word), problem in zip(CASES, json.loads(done.stdout), strict=True):
        assert word in problem, options
        assert bool(problem) == bool(word), options


def test_a_start_with_such_options_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "targets_of", lambda *args: pytest.fail("it went on"))
    done = CliRunner().invoke(main, ["upgrade", "inv.py", "--yes", "--", "--dry"])
    assert done.exit_code == 2
    assert "use --plan" in done.output


def test_two_subjects_are_wrong_usage() -> None:
    done = CliRunner().invoke(main, ["upgrade", "inv.py", "--plan", "--toolkit", "--reboot"])
    assert done.exit_code == 2
    assert "exclude each other" in done.output
