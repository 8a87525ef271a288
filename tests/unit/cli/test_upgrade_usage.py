"""The arguments that `gpufleet upgrade` accepts, and its errors for all others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import click
import pytest
from click.testing import CliRunner, Result

from gpufleet.cli import main, upgrade
from gpufleet.cli.upgrade_words import wanted_of
from gpufleet.core.exit_status import ExitStatus
from gpufleet.upgrade.subjects import WantedChange
from tests.unit.documentation.documents import ROOT


@pytest.fixture(autouse=True)
def nothing_begins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(upgrade, "targets_of", lambda *args: pytest.fail("it went on"))


def done(*words: str) -> Result:
    return CliRunner().invoke(main, ["upgrade", *words])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--to", "banana"], "must be a whole version, such as 580.95.05"),
        (["--to", ""], "must be a whole version"),
        (["--to", "580"], "must be a whole version"),
        (["--to", "1.20.1"], "no version of a driver"),
        (["--to", "99999999999.1"], "no version of a driver"),
        (["--toolkit", "--to", "banana"], "must be a whole version, such as 1.18.0"),
        (["--toolkit", "--to", ""], "must be a whole version"),
        (["--branch", ""], "must be three digits"),
        (["--branch", "580.95.05"], "must be three digits"),
        (["--branch", "580", "--to", "580.95.05"], "exclude each other"),
        (["--branch", "", "--to", ""], "exclude each other"),
        (["--reboot", "--to", ""], "exclude each other"),
        (["--toolkit", "--branch", "580"], "exclude each other"),
        (["--sharing", "--to", "580.95.05"], "exclude each other"),
        (["--sharing", "--toolkit"], "exclude each other"),
        (["--sharing", "--reboot"], "exclude each other"),
    ],
)
def test_wrong_usage(words: list[str], text: str) -> None:
    found = done("inv.py", "--plan", *words)
    assert (found.exit_code, text in " ".join(found.output.split())) == (2, True), found.output


LOG_FOLDER_IS_A_FILE = """
import pathlib, sys, types
from gpufleet.cli.upgrade_run import Command
command = Command.__new__(Command)  # no host is asked
command.folder = pathlib.Path(sys.argv[1], "file/upgrades")
command.folder.parent.touch()
command._carried_out(types.SimpleNamespace(plan=types.SimpleNamespace(run="r")), None)
"""


def test_a_log_that_cannot_be_written_ends_the_command(tmp_path: Path) -> None:
    """In a process of its own: pyinfra replaces parts of the standard library."""
    words = [sys.executable, "-c", LOG_FOLDER_IS_A_FILE, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    assert done.returncode == 1
    assert "FileError" in done.stderr
    assert "Not a directory" in done.stderr


def test_versions_and_branches_are_taken_as_they_are() -> None:
    plain = {"toolkit": False, "reboot": False, "sharing": False, "downgrade": False}
    assert wanted_of("580.95.05", None, **plain).version == "580.95.05"
    assert wanted_of(None, "580", **plain).branch == "580"
    wanted = wanted_of("1.18.0", None, **{**plain, "toolkit": True, "downgrade": True})
    assert (wanted.subject, wanted.version, wanted.downgrade) == ("toolkit", "1.18.0", True)
    with pytest.raises(click.UsageError):
        wanted_of(None, None, **{**plain, "toolkit": True, "reboot": True})


def test_a_misspelt_command_is_no_inventory(tmp_path: Path) -> None:
    found = done("rolback")
    assert (found.exit_code, "Did you mean 'rollback'?" in found.output) == (2, True)
    (tmp_path / "rolback").touch()
    with pytest.raises(pytest.fail.Exception, match="it went on"):
        done("rolback", "--plan")


@pytest.mark.parametrize("command", ["start", "status", "abort", "rollback"])
def test_every_command_takes_an_inventory_and_a_limit(command: str) -> None:
    text = done(command, "--help").output
    assert "INVENTORY" in text
    assert "--limit" in text
    assert done(command).exit_code == 2


@pytest.mark.parametrize("command", ["start", "abort", "rollback"])
def test_what_is_wrong_comes_before_the_confirmation(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal the command would ask for --yes first, which would not help."""
    monkeypatch.undo()
    found = done(command, "lost.py")
    assert (found.exit_code, "GF701" in found.output, "--yes" in found.output) == (2, True, False)
    found = done(command, "lost.py", "extra")
    assert (found.exit_code, "unexpected extra argument (extra)" in found.output) == (2, True)


def test_abort_and_start_say_what_they_do() -> None:
    assert "Exit status: 0 no host is out of service" in " ".join(
        done("abort", "--help").output.split()
    )
    text = " ".join(done("start", "--help").output.split())
    assert "never ended" not in text
    assert "pods that their controllers replace are evicted" in text


def test_the_page_of_exit_statuses_has_those_of_an_abort() -> None:
    page = (ROOT / "docs/reference/exit-status.md").read_text()
    said = upgrade.ABORTED.removeprefix("Exit status: ").partition("; 2 usage error")[0]
    assert f"`gpufleet upgrade abort`: {said}." in " ".join(page.split())


class Called:
    """A fake of upgrade_run.Command that keeps its last call."""

    last: tuple[WantedChange, str, dict[str, Any]]

    def __init__(self, *words: Any, **more: Any) -> None:
        self.wanted: WantedChange = words[3]

    def __getattr__(self, name: str) -> Any:
        def asked(*words: Any, **more: Any) -> ExitStatus:
            Called.last = (self.wanted, name, more)
            return ExitStatus.CONVERGED

        return asked


@pytest.mark.parametrize(
    ("words", "wanted", "method", "more"),
    [
        (["inv.py", "--plan", "--to", "580.95.05"], WantedChange(version="580.95.05"), "run",
         {"only_plan": True}),
        (["start", "inv.py", "--yes", "--branch", "580"], WantedChange(branch="580"), "run",
         {"only_plan": False}),
        (["inv.py", "--yes", "--reboot"], WantedChange("reboot"), "run", {"only_plan": False}),
        (["start", "inv.py", "--sharing", "--plan"], WantedChange("sharing"), "run",
         {"only_plan": True}),
        (["status", "inv.py", "--json"], WantedChange(), "show", {"as_json": True}),
        (["abort", "inv.py", "--yes"], WantedChange(), "abort", {}),
        (["rollback", "inv.py", "--plan"], WantedChange(), "run", {"only_plan": True}),
    ],
)  # fmt: skip
def test_each_command_reaches_its_run(
    words: list[str],
    wanted: WantedChange,
    method: str,
    more: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upgrade, "targets_of", lambda *args: [])
    monkeypatch.setitem(
        sys.modules, "gpufleet.cli.upgrade_run", cast(ModuleType, SimpleNamespace(Command=Called))
    )
    found = done(*words)
    assert found.exit_code == 0, found.output
    assert Called.last == (wanted, method, more)
