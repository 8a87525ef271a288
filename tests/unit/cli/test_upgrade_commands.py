"""Settings of a run: the commands of its inventory as it is now, and pods that leave."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gpufleet.cli import main, upgrade_commands, upgrade_run
from gpufleet.cli.upgrade_commands import with_commands_of_now
from gpufleet.cli.upgrade_inventory import step_words
from gpufleet.core.paths import shipped
from gpufleet.core.stopped import Stopped
from gpufleet.run.findings import NO_INVENTORY
from gpufleet.upgrade.decide import End
from gpufleet.upgrade.operations.run import Run
from gpufleet.upgrade.operations.store import Order, Store
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.verify.inventory import Target, VerifyError
from tests.unit.upgrade.running import planned

ORDER = Order("prod.py", "/")
FROZEN = {"h": UpgradeSettings(ready_command="wrong {host}", soak=7)}


def now(monkeypatch: pytest.MonkeyPatch, **data: Any) -> tuple[UpgradeSettings, list[str]]:
    said: list[str] = []
    there = [Target("h", (), data), Target("new", (), data)]
    monkeypatch.setattr(upgrade_commands, "load_targets", lambda inventory: there)
    return with_commands_of_now(ORDER, FROZEN, said.append)["h"], said


def test_a_command_can_be_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    found, said = now(monkeypatch, upgrade_ready_command="right", upgrade_soak=1)
    assert (found.ready_command, found.soak, said) == ("right", 7, [])
    found, _ = now(monkeypatch)
    assert found.ready_command is None


def test_keys_that_are_wrong_now_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found, said = now(monkeypatch, upgrade_ready_comand="right")
    assert found == FROZEN["h"]
    assert "commands stay as they were" in said[0]


def test_an_inventory_that_is_gone_stops_no_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def missing(inventory: str) -> list[Target]:
        raise VerifyError(NO_INVENTORY(path=inventory))

    monkeypatch.setattr(upgrade_commands, "load_targets", missing)
    assert with_commands_of_now(ORDER, FROZEN, said.append) == FROZEN
    assert said[0].startswith("commands stay as they were: GF003")


@pytest.mark.parametrize("drain", ["auto", "gpu", "all"])
def test_every_pod_leaves_a_node_that_is_rebooted(drain: str) -> None:
    """One that stayed would be ended by the reboot."""
    target = Target("h", (), {"upgrade_drain": drain})
    assert upgrade_run._settings(target, "reboot").drain == "all"
    assert upgrade_run._settings(target, "driver").drain == ("all" if drain == "all" else "gpu")


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["rollback"], 1, "GF063 There is no run in "),
        (["rollback", "--run", "lost"], 1, "GF063 There is no run lost in "),
        (["start", "lost.py"], 2, "GF003"),
        (["start", "lost.py", "extra"], 2, "unexpected extra argument (extra)"),
    ],
)
def test_what_is_wrong_comes_before_the_confirmation(
    words: list[str], status: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard input is no terminal: --yes would be asked for, and help nothing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    done = CliRunner().invoke(main, ["upgrade", *words])
    assert (done.exit_code, text in done.output) == (status, True)
    assert "--yes" not in done.output


def started_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of a step, of a run that was begun in this folder and goes on in another one."""
    elsewhere = folder / "elsewhere"
    for place in (elsewhere / "deploys", elsewhere / "group_data"):
        place.mkdir(parents=True)
    (elsewhere / "deploys/upgrade_driver.py").touch()
    (elsewhere / "config.py").touch()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.setattr("gpufleet.cli.upgrade_run.signal.signal", lambda *args: None)
    ran: list[list[str]] = []

    def carried(run: Run) -> End:
        ran.append([os.getcwd(), *run.children.words(["h"], [])])
        return End("paused")

    monkeypatch.setattr(upgrade_run, "carry_on", carried)
    order = Order("prod.py", str(folder / "own"), hosts={"h": {}})
    upgrade_run.carry_out(Store.create(order, planned()), print)
    return ran[0]


def test_a_run_goes_on_with_the_deploys_of_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    found = started_in(tmp_path, monkeypatch)
    assert found[0] == str(tmp_path / "own")
    assert found[-1] == str(shipped("deploys") / "upgrade_driver.py")
    assert str(shipped("config.py")) in found


def test_a_run_goes_on_with_its_own_deploys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own/deploys").mkdir(parents=True)
    (tmp_path / "own/deploys/upgrade_driver.py").touch()
    (tmp_path / "own/config.py").touch()
    found = started_in(tmp_path, monkeypatch)
    assert found[-1] == "deploys/upgrade_driver.py"
    assert "--config" not in found


def test_a_run_whose_folder_is_gone_does_not_go_on_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Stopped) as error:
        started_in(tmp_path, monkeypatch)
    assert error.value.findings[0].code == "GF271"


def test_a_step_selects_its_hosts_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyinfra would take the name for that of a group."""
    monkeypatch.chdir(tmp_path)
    words = step_words("prod.py", ("-v",))(["h100", "@local"], ["--data", "a=b"])
    given = words[words.index("--limit") :]
    limit = ["--limit", "[h]100", "--limit", "@[l]ocal"]
    assert given[:-1] == [*limit, "-v", "--data", "a=b", "prod.py"]


@pytest.mark.parametrize("key", ["node_reboot", "driver_reboot"])  # the latter is its former name
@pytest.mark.parametrize(
    ("value", "reboot", "drain"),
    [("if_needed", "if_needed", "all"), ("never", "never", "gpu"), ("maybe", "", "gpu")],
)
def test_what_leaves_a_node_depends_on_its_reboot(
    key: str, value: str, reboot: str, drain: str
) -> None:
    target = Target("h", ("gpu_nodes",), {key: value})
    assert upgrade_run._reboot_of(target) == reboot
    assert upgrade_run._settings(target, "driver").drain == drain
