"""Commands of the checks as root, with fake programs in PATH that log their arguments."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpufleet.verify.connection import Connections
from gpufleet.verify.inventory import Target
from gpufleet.verify.probe import Unusable, parse_become

# Notes its words, reads a line where -S stands among them, then runs the words that follow its own.
PROGRAM = """#!{python}
import os, sys
words = sys.argv[1:]
line = sys.stdin.readline() if "-S" in words else ""
with open({notes!r}, "a") as notes:
    notes.write(" ".join([{name!r}, *words[:-1]]) + f" <{{line}}>\\n")
if {name!r} == "su":
    os.execvp("sh", ["sh", "-c", words[-1]])
rest = words[words.index("su" if "su" in words else "sh"):]
os.execvp(rest[0], rest)
"""
Opened = Callable[..., str]


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """A function that runs a command and returns its output, then the calls of sudo and others."""
    notes = tmp_path / "notes"
    notes.touch()
    for name in ("sudo", "doas", "dzdo", "su"):
        program = tmp_path / name
        program.write_text(PROGRAM.format(python=sys.executable, notes=str(notes), name=name))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    connections = Connections()

    def run(**data: Any) -> str:
        output = connections.open(Target("@local", (), data)).run("echo it\\'s done; cat")
        assert output.ok, output.text
        return output.text + notes.read_text()

    yield run
    connections.close()


def test_nobody_else(calls: Opened) -> None:
    assert calls(_sudo=False, _sudo_password="unused") == "it's done\n"


@pytest.mark.parametrize(
    ("data", "call"),
    [
        ({"_sudo": True}, "sudo -H -n sh -c"),
        ({"_sudo": True, "_sudo_user": "ada"}, "sudo -H -n -u ada sh -c"),
        ({"_doas": True, "_doas_user": "ada"}, "doas -n -u ada sh -c"),
        ({"_dzdo": True}, "dzdo -H -n sh -c"),
        ({"_su_user": "root"}, "su root -c"),
    ],
)
def test_each_of_them_runs_the_command_and_asks_for_nothing(
    data: dict[str, Any], call: str, calls: Opened
) -> None:
    assert calls(**data) == f"it's done\n{call} <>\n"


def test_one_within_another(calls: Opened) -> None:
    said = calls(_sudo=True, _su_user="ada")
    assert said == "it's done\nsudo -H -n su ada -c <>\nsu ada -c <>\n"


def test_the_password_is_typed_in_and_is_no_word_of_a_command(calls: Opened) -> None:
    said = calls(_sudo=True, _sudo_password="hunter2 ' x")
    assert said == "it's done\nsudo -H -k -S -p  sh -c <hunter2 ' x\n>\n"
    assert "hunter2" not in repr(parse_become({"_sudo": True, "_sudo_password": "hunter2"}))


@pytest.mark.parametrize(
    ("name", "data", "key"),
    [
        ("@local", {"_su_user": "root", "_su_password": "hunter2"}, "_su_password"),
        ("@local", {"_sudo": True, "_sudo_password": "hunter\n2"}, "_sudo_password"),
        ("@docker/x", {"_sudo": True, "_sudo_password": "hunter2"}, "_sudo_password"),
    ],
)
def test_what_cannot_be_done_is_said(name: str, data: dict[str, Any], key: str) -> None:
    connections = Connections()
    with pytest.raises(Unusable, match=key) as caught:
        connections.open(Target(name, (), data))
    connections.close()
    assert "hunter" not in str(caught.value)
