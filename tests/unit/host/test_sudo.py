"""sudo gets the password outside of any command line; the command gets its input and options."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
from pyinfra.api import Host, StringCommand
from pyinfra.connectors.util import CommandOutput, OutputLine, make_unix_command

from gpufleet.host.sudo import run_on_host

PASSWORD = "p4ss'word $HOME \\ of*sudo"
# Asks for the password as sudo -A does, notes its own words, and runs what follows its options.
SUDO = """#!/bin/sh
printf '%s\\n' "$@" > {folder}/words
case " $* " in
*' -n '*)
    said='sudo: a password is required'; [ "$LC_ALL" = C ] || said='sudo: Passwort erforderlich'
    [ -e {folder}/open ] || {{ echo "$said" >&2; exit 1; }} ;;
*) [ -e {folder}/open ] || [ "$("$SUDO_ASKPASS" prompt)" = "$(cat {folder}/password)" ] || exit 9 ;;
esac
while [ "$1" != sh ] && [ "$1" != env ]; do shift; done
exec "$@"
"""


class Machine:
    """The part of pyinfra's host that `run_on_host` needs: commands run here, with a fake sudo."""

    print_prefix = "[machine] "

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.connector_data: dict[str, Any] = {}
        self.sent: list[str] = []
        sudo = folder / "bin" / "sudo"
        sudo.parent.mkdir()
        sudo.write_text(SUDO.format(folder=folder))
        sudo.chmod(0o755)
        (folder / "password").write_text(PASSWORD)

    def get_temp_dir_config(self) -> str:
        return str(self.folder)

    def run_shell_command(
        self, command: StringCommand | str, **how: Any
    ) -> tuple[bool, CommandOutput]:
        lines = how.pop("_stdin", None)
        words = {key: value for key, value in how.items() if not key.startswith("print_")}
        text = make_unix_command(cast(StringCommand, command), **words).get_raw_value()
        self.sent.append(text)
        process = subprocess.Popen(
            ["sh", "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={"PATH": f"{self.folder}/bin:/usr/bin:/bin"},
        )  # fmt: skip
        given = "".join(f"{line}\n" for line in lines or [])
        out, err = process.communicate(given.encode())  # a sudo that refuses may not read it
        if b"a password is required" in err and "typed" in self.connector_data:  # as pyinfra asks
            self.connector_data["prompted_sudo_password"] = self.connector_data["typed"]
        rows = [OutputLine("stdout", line) for line in out.decode().splitlines()]
        return process.returncode == 0, CommandOutput(rows)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def said(machine: Machine, command: str = "cat; echo $A", **how: Any) -> tuple[bool, list[str]]:
    ok, output = run_on_host(cast(Host, machine), StringCommand(command), _sudo=True, **how)
    return ok, output.stdout_lines


@pytest.mark.parametrize("lines", [None, ["one", "two"]])
def test_the_password_reaches_sudo_and_no_command(machine: Machine, lines: Any) -> None:
    how = {"_sudo_password": PASSWORD, "_stdin": lines, "_env": {"A": "b c"}, "_get_pty": True}
    assert said(machine, **how) == (True, [*(lines or []), "b c"])
    assert not [text for text in machine.sent if "p4ss" in text]
    assert "p4ss" not in (machine.folder / "words").read_text()
    (askpass,) = machine.folder.glob("pyinfra-sudo-askpass-*")
    assert "p4ss" not in askpass.read_text()


def test_sudo_that_asks_nothing_leaves_the_input_to_the_command(machine: Machine) -> None:
    (machine.folder / "open").touch()
    assert said(machine, _sudo_password=PASSWORD, _stdin=["one"]) == (True, ["one", ""])


def test_a_wrong_password_fails(machine: Machine) -> None:
    assert said(machine, _sudo_password="other") == (False, [])


def test_a_password_that_was_typed_is_used_the_same_way(machine: Machine) -> None:
    machine.connector_data["typed"] = PASSWORD
    assert said(machine, _stdin=["one"]) == (True, ["one", ""])
    assert said(machine, _stdin=["two"]) == (True, ["two", ""])
    assert not [text for text in machine.sent if "p4ss" in text]


@pytest.mark.parametrize(
    "how",
    [{}, {"_sudo_user": "ada"}, {"_use_sudo_login": True}, {"_preserve_sudo_env": True}],
)
def test_without_a_password_the_words_are_those_of_pyinfra_in_english(
    machine: Machine, how: dict[str, Any]
) -> None:
    (machine.folder / "open").touch()
    assert said(machine, "echo $A", _env={"A": "b"}, **how) == (True, ["b"])
    (sent,) = machine.sent
    expected = make_unix_command(StringCommand("echo $A"), _sudo=True, _env={"A": "b"}, **how)
    assert sent == f"env LC_ALL=C {expected.get_raw_value()}"
    said(machine, "true", _sudo_password=PASSWORD, **how)
    words = (machine.folder / "words").read_text().split()
    clean = ["env", "-u", "PYINFRA_SUDO_PASSWORD", "-u", "SUDO_ASKPASS"]
    assert words[: words.index("sh")] == ["-H", "-A", "-k", *expected_options(how), *clean]


def test_a_sudo_that_hands_its_environment_on_hands_no_password_on(machine: Machine) -> None:
    how = {"_sudo_password": PASSWORD, "_preserve_sudo_env": True}
    assert said(machine, "env | grep -c -e PYINFRA -e ASKPASS; true", **how) == (True, ["0"])


def expected_options(how: dict[str, Any]) -> list[str]:
    options = {"_sudo_user": ["-u", "ada"], "_use_sudo_login": ["-i"], "_preserve_sudo_env": ["-E"]}
    return [word for key in how for word in options[key]]
