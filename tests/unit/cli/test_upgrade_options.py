"""Options of pyinfra after `--` of `gpufleet upgrade`: none may change what a step does."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext

import click
import pytest
from click.testing import CliRunner

from gpufleet.cli import main, upgrade
from gpufleet.cli.pyinfra_options import NUMBERS, PERMISSION_FLAGS, TEXTS
from gpufleet.cli.upgrade_words import ALLOWED, INSTEAD, check_options

CASES = (
    (["--dry"], "--plan"),
    (["--serial", "--limit", "a"], "--limit"),
    (["--limit=a"], "--limit"),
    (["--exclude", "a"], "before"),
    (["--exclude=a"], "before"),
    (["--data", "upgrade_soak=0"], "inventory"),
    (["--data=upgrade_soak=0"], "inventory"),
    (["--data", " upgrade_soak=0"], "inventory"),
    (["--debug-operations"], "--plan"),
    (["--debug-facts", "-v"], "--plan"),
    (["--fail-percent", "10"], "upgrade_max_failed"),
    (["--chdir=/"], "folder"),
    (["--json"], "status --json"),
    (["--same-sudo-password"], "--ask-sudo-password"),
    (["--ssh-password-prompt"], "in the inventory"),
    (["--ssh-password", "x"], "in the inventory"),
    (["--ssh-key-password", "x"], "in the inventory"),
    (["--data", "_sudo_password=x"], "_sudo_password.*in the inventory"),
    (["--data", "ssh_password=x"], "ssh_password.*in the inventory"),
    (["--version"], "No such option"),
    (["-h"], "No such option"),
    (["--support"], "No such option"),
    (["--group-data", "more"], "group_data/"),
    (["--data", "node_reboot=if_needed"], "node_reboot.*in the inventory"),
    (["--data", "node_reboot=True"], "inventory"),
    (["--data=cluster_kubeconfig=other"], "inventory"),
    (["--data", "a=b", "--data", "ssh_hostname=10.0.0.1"], "inventory"),
    (["--data", "_ignore_errors=True"], "_ignore_errors"),
    (["--serial", "server.shell"], "extra argument"),
    (["--serial", "deploys/remove.py"], "extra argument"),
    (["--ssh-user"], "requires an argument"),  # without its value
    (["--data", "a=b", "--ssh-user=root", "--serial", "-vv"], ""),
    (["--data", "ssh_key=k", "--data", "_sudo=True", "--key", "k", "--config", "c.py"], ""),
    (["--data", "note=upgrade_soak", "--data=a=--dry"], ""),
)
OPTIONS = """\
import json
from pyinfra_cli.cli import cli
found = [each for each in cli.params if each.param_type_name == "option"]
print(json.dumps([[sorted(each.opts), each.is_flag or each.count] for each in found]))
"""


@pytest.mark.parametrize(("options", "word"), CASES, ids=str)
def test_what_would_make_a_step_another_one_is_refused(options: list[str], word: str) -> None:
    with pytest.raises(click.UsageError, match=word) if word else nullcontext():
        check_options(options)


def test_of_each_option_of_pyinfra_it_is_decided() -> None:
    """A later version of pyinfra may add an option that ends a step early. A separate process
    imports the parser, because that makes gevent replace parts of the standard library."""
    done = subprocess.run([sys.executable, "-c", OPTIONS], capture_output=True, check=True)
    theirs = {tuple(names): flag for names, flag in json.loads(done.stdout)}
    prints = {("--support",), ("--version",), ("--help", "-h")}
    ours = {tuple(sorted(names.split())): True for names in PERMISSION_FLAGS}
    ours |= {tuple(sorted(names.split())): False for names in (*TEXTS, *NUMBERS)}
    assert ours == {names: flag for names, flag in theirs.items() if names not in prints}
    assert {max(names, key=len) for names in ours} == {*ALLOWED, *INSTEAD}
    assert not ALLOWED & INSTEAD.keys()


def test_a_start_with_such_options_is_wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "targets_of", lambda *args: pytest.fail("it went on"))
    done = CliRunner().invoke(main, ["upgrade", "inv.py", "--yes", "--", "--dry"])
    assert done.exit_code == 2
    assert "use --plan" in done.output


def test_two_subjects_are_wrong_usage() -> None:
    done = CliRunner().invoke(main, ["upgrade", "inv.py", "--plan", "--toolkit", "--reboot"])
    assert done.exit_code == 2
    assert "exclude each other" in done.output
