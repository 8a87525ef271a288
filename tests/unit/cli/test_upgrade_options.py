"""Options of pyinfra behind `--` of `gpufleet upgrade`: none may make a step another one."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from gpufleet.cli import main, upgrade
from gpufleet.cli.upgrade_options import ALLOWED, REFUSED

CASES = (
    (["--dry"], "--plan"),
    (["--serial", "--limit", "a"], "--limit"),
    (["--limit=a"], "--limit"),
    (["--exclude", "a"], "--limit"),
    (["--exclude=a"], "--limit"),
    (["--data", "upgrade_soak=0"], "inventory"),
    (["--data=upgrade_soak=0"], "inventory"),
    (["--data", " upgrade_soak=0"], "inventory"),
    (["--debug-operations"], "--plan"),
    (["--debug-facts", "-v"], "--plan"),
    (["--fail-percent", "10"], "upgrade_max_failed"),
    (["--chdir=/"], "folder"),
    (["--json"], "status --json"),
    (["--same-sudo-password"], "_sudo_password"),
    (["--ssh-password-prompt"], "ssh_password"),
    (["--ssh-password", "x"], "keeps its options"),
    (["--ssh-key-password", "x"], "keeps its options"),
    (["--data", "_sudo_password=x"], "_sudo_password in the inventory"),
    (["--data", "ssh_password=x"], "ssh_password in the inventory"),
    (["--version"], "--version"),
    (["-h"], "--help"),
    (["--support"], "--support"),
    (["--group-data", "more"], "group_data/"),
    (["--data", "node_reboot=if_needed"], "node_reboot in the inventory"),
    (["--data", "node_reboot=True"], "inventory"),
    (["--data=cluster_kubeconfig=other"], "inventory"),
    (["--data", "a=b", "--data", "ssh_hostname=10.0.0.1"], "inventory"),
    (["--data", "_ignore_errors=True"], "_ignore_errors"),
    (["--serial", "server.shell"], "no deploy"),
    (["--serial", "deploys/remove.py"], "no deploy"),
    (["--ssh-user"], "no inventory"),  # without its value
    (["--data", "a=b", "--ssh-user=root", "--serial", "-vv"], ""),
    (["--data", "ssh_key=k", "--data", "_sudo=True", "--key", "k", "--config", "c.py"], ""),
    (["--data", "note=upgrade_soak", "--data=a=--dry"], ""),
)
JUDGED = """\
import json, sys
from pyinfra_cli.cli import cli
from gpufleet.cli.parsed import DEPLOY, INVENTORY
from gpufleet.cli.upgrade_options import why_refused
from gpufleet.run.invocation import parse
asked = [parse([*words, INVENTORY, DEPLOY]) for words in json.load(sys.stdin)]
names = [max(each.opts, key=len) for each in cli.params if each.param_type_name == "option"]
print()  # below what --support prints
print(json.dumps([[why_refused(each) for each in asked], names]))
"""


def test_what_would_make_a_step_another_one_is_refused() -> None:
    """In a process of its own: pyinfra's parser makes gevent replace parts of the library. Of each
    option of pyinfra it is decided: a later version may have one that ends a step early."""
    asked = json.dumps([options for options, _ in CASES])
    words = [sys.executable, "-c", JUDGED]
    done = subprocess.run(words, input=asked, capture_output=True, text=True, check=True)
    problems, names = json.loads(done.stdout.splitlines()[-1])
    for (options, word), problem in zip(CASES, problems, strict=True):
        assert word in problem, options
        assert bool(problem) == bool(word), options
    assert {*ALLOWED, *REFUSED, "--support", "--version"} == set(names)
    assert not ALLOWED & REFUSED.keys()


def test_a_start_with_such_options_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "targets_of", lambda *args: pytest.fail("it went on"))
    done = CliRunner().invoke(main, ["upgrade", "inv.py", "--yes", "--", "--dry"])
    assert done.exit_code == 2
    assert "use --plan" in done.output


def test_two_subjects_are_wrong_usage() -> None:
    done = CliRunner().invoke(main, ["upgrade", "inv.py", "--plan", "--toolkit", "--reboot"])
    assert done.exit_code == 2
    assert "exclude each other" in done.output
