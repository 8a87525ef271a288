"""Without a terminal no program asks, even if standard input stays open. With one, it asks once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from gpufleet.cli import deploy, main, output
from gpufleet.core.python import python_code
from gpufleet.core.secrets import SUDO_PASSWORD, hide_secrets
from gpufleet.run.part import GPUFLEET
from gpufleet.verify.inventory import Target
from tests.selection import EXTENDED

PASSWORD = "correct horse battery"
SUDO = f"""#!/bin/sh
echo "$@" >>{{log}}
[ "$SUDO_ASKPASS" ] && [ "$($SUDO_ASKPASS)" = "{PASSWORD}" ] || {{{{
  echo 'sudo: a password is required' >&2; exit 1; }}}}
while :; do case $1 in -*) shift ;; *) break ;; esac; done
exec "$@"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An inventory of this machine, on which sudo needs a password."""
    (tmp_path / "inv.py").write_text('gpu_nodes = (["@local"], {"_sudo": True})\n')
    sudo = tmp_path / "bin/sudo"
    sudo.parent.mkdir()
    sudo.write_text(SUDO.format(log=tmp_path / "log"))
    sudo.chmod(0o755)
    return tmp_path


def run(
    folder: Path, *words: str, **variables: str
) -> tuple[subprocess.CompletedProcess[str], float]:
    """A command whose standard input is a pipe that stays open."""
    path = f"{folder}/bin:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HOME": str(folder), **variables}
    reads, writes = os.pipe()
    try:
        return subprocess.run(
            [*python_code(GPUFLEET), *words], stdin=reads, capture_output=True, text=True,
            cwd=folder, env=environment, timeout=900, check=False,
        )  # fmt: skip
    finally:
        os.close(reads)
        os.close(writes)


@pytest.mark.parametrize(
    "words",
    [
        ("apply", "inv.py", "--yes", "-q"),
        pytest.param(("plan", "inv.py"), marks=EXTENDED),  # becomes pyinfra as apply does
        ("status", "inv.py"),
        ("doctor", "inv.py"),
        ("adopt", "inv.py"),
        pytest.param(("remove", "inv.py", "--yes"), marks=EXTENDED),  # the same
        ("upgrade", "inv.py", "--plan"),
    ],
    ids=lambda words: words[0],
)
def test_a_password_for_sudo_is_not_asked_for_in_a_pipe(folder: Path, words: list[str]) -> None:
    done = run(folder, *words)
    text = done.stdout + done.stderr
    assert done.returncode == (2 if words[0] == "doctor" else 1), text
    assert "GF506" in text, text
    assert "sudo password:" not in text


def test_one_password_is_for_all_hosts_and_in_no_arguments(folder: Path) -> None:
    done = run(folder, "status", "inv.py", "--csv", **{SUDO_PASSWORD: PASSWORD})
    assert "true" in done.stdout.splitlines()[1], done.stdout + done.stderr
    arguments = (folder / "log").read_bytes()
    assert arguments.startswith(b"-H -A")
    assert PASSWORD.encode() not in arguments
    assert PASSWORD not in done.stdout + done.stderr


def test_status_refuses_an_exclude_that_matches_nothing(folder: Path) -> None:
    done = run(folder, "status", "inv.py", "--exclude", "nobody")
    assert (done.returncode, "GF702 --exclude nobody matches no" in done.stderr) == (4, True)


def test_the_option_needs_a_terminal() -> None:
    done = CliRunner().invoke(main, ["plan", "inv.py", "--ask-sudo-password"])
    assert done.exit_code == 2
    assert SUDO_PASSWORD in done.stderr


def test_the_option_asks_before_anything_else_and_the_run_gets_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(SUDO_PASSWORD, "")
    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(output, "sys", terminal)
    monkeypatch.setattr(deploy, "load_targets", lambda inventory: [Target("a", ("g",), {})])
    became: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, words: became.append([path, *words]))
    words = ["plan", "inv.py", "--ask-sudo-password"]
    done = CliRunner().invoke(main, words, input=f"{PASSWORD}\n")
    assert done.exit_code == 0, done.output
    assert os.environ[SUDO_PASSWORD] == PASSWORD
    assert PASSWORD not in str(became) + done.output
    from gpufleet.core.secrets import take_sudo_password

    assert take_sudo_password() == PASSWORD
    assert SUDO_PASSWORD not in os.environ
    assert hide_secrets(f"it is {PASSWORD}") == "it is ***"


@pytest.mark.parametrize("option", ["--same-sudo-password", "--ssh-password-prompt"])
def test_options_of_pyinfra_that_ask_need_a_terminal(option: str) -> None:
    done = CliRunner().invoke(main, ["apply", "inv.py", "--yes", "--", option])
    assert (done.exit_code, option in done.stderr) == (2, True)


def test_a_passphrase_is_not_asked_for_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpufleet.run.connection import NoPassword, read_password

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False))
    with pytest.raises(NoPassword):
        read_password("Enter password for private key: ")
