"""What the command line of `gpufleet upgrade` takes, and what it says to the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from gpufleet.cli import main, upgrade
from gpufleet.cli.upgrade_run import PlannedRun
from gpufleet.cli.upgrade_wanted import wanted_of
from gpufleet.upgrade.order import Order
from gpufleet.upgrade.plan import make_plan
from gpufleet.upgrade.settings import UpgradeSettings
from tests.unit.upgrade.running import HOST


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
        (["--toolkit", "--branch", "580"], "of the driver"),
        (["--dry"], "use --plan"),
        (["--exclude", "h"], "use --limit"),
    ],
)
def test_wrong_usage(words: list[str], text: str) -> None:
    found = done("inv.py", "--plan", *words)
    assert (found.exit_code, text in " ".join(found.output.split())) == (2, True), found.output


def test_versions_and_branches_are_taken_as_they_are() -> None:
    assert wanted_of("580.95.05", None, toolkit=False, reboot=False).version == "580.95.05"
    assert wanted_of(None, "580", toolkit=False, reboot=False).branch == "580"
    wanted = wanted_of("1.18.0", None, toolkit=True, reboot=False)
    assert (wanted.subject, wanted.version) == ("toolkit", "1.18.0")
    with pytest.raises(click.UsageError):
        wanted_of(None, None, toolkit=True, reboot=True)


def test_a_misspelt_command_is_no_inventory(tmp_path: Path) -> None:
    found = done("resumee")
    assert (found.exit_code, "Did you mean 'resume'?" in found.output) == (2, True)
    (tmp_path / "resumee").touch()
    with pytest.raises(pytest.fail.Exception, match="it went on"):
        done("resumee", "--plan")


@pytest.mark.parametrize("command", ["resume", "rollback"])
def test_no_status_of_limit_without_limit(command: str) -> None:
    assert "--limit" not in done(command, "--help").output


def test_abort_and_start_say_what_they_do() -> None:
    assert "Exit status: 0 the run is over" in " ".join(done("abort", "--help").output.split())
    text = " ".join(done("start", "--help").output.split())
    assert "never ended" not in text
    assert "pods that their controllers replace are evicted" in text


@pytest.mark.parametrize(
    ("change", "status"),
    [({"refusals": ("GF280 The host was not reached",)}, 1), ({"before": HOST.target,
      "loaded": HOST.target}, 0), ({"target": None, "refusals": ("GF281 No version",)}, 1)],
)  # fmt: skip
def test_the_status_of_a_plan(
    change: dict[str, Any], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan([replace(HOST, **change)], UpgradeSettings.model_validate({}))
    monkeypatch.setattr(upgrade, "targets_of", lambda *args: [])
    monkeypatch.setattr(upgrade, "plan_run", lambda *args, **how: PlannedRun(Order("i", "/"), plan))
    assert done("inv.py", "--plan").exit_code == status


def test_the_page_of_exit_statuses_has_those_of_an_abort() -> None:
    """Also of a host that was not checked."""
    page = (Path(__file__).parents[3] / "docs/reference/exit-status.md").read_text()
    said = upgrade.ABORTED.removeprefix("Exit status: ").partition("; 2 usage error")[0]
    assert "or was not checked" in said
    assert f"`gpufleet upgrade abort`: {said}." in " ".join(page.split())
