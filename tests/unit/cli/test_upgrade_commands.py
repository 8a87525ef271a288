"""Settings of a run: the commands of its inventory as it is now, and pods that leave."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from click.testing import CliRunner

from gpufleet.cli import main, upgrade_commands, upgrade_inventory, upgrade_record, upgrade_run
from gpufleet.cli.upgrade_commands import with_commands_of_now
from gpufleet.cli.upgrade_inventory import step_words
from gpufleet.cli.upgrade_signals import SIGNALS
from gpufleet.cli.upgrade_wanted import Wanted
from gpufleet.core.paths import shipped
from gpufleet.core.stopped import Stopped
from gpufleet.run.findings import NO_INVENTORY
from gpufleet.upgrade.decide import End
from gpufleet.upgrade.operations.children import Children, Result
from gpufleet.upgrade.operations.clusters import NodeAt
from gpufleet.upgrade.operations.run import Run
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.order import Order
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.verify.inventory import Target, VerifyError
from tests.unit.upgrade.running import HOST, planned

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


def started_in(
    folder: Path, monkeypatch: pytest.MonkeyPatch, owner: int | None = None
) -> list[str]:
    """The words of a step, of a run that was begun in this folder and goes on in another one.
    `owner`: who had the folder then, by default who runs the tests."""
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
    owner = os.geteuid() if owner is None else owner
    order = Order("prod.py", str(folder / "own"), hosts={"h": {}}, owner=owner)
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


@pytest.mark.parametrize("owner", [4711, 4712])
def test_a_run_does_not_go_on_in_a_folder_that_another_user_has_now(
    owner: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one below /tmp that was removed, and created by others."""

    def of_4711(path: Path, owners: set[int]) -> str:
        return "" if 4711 in owners else "it belongs to the user 4711"

    monkeypatch.setattr(upgrade_record, "why_not_of", of_4711)
    (tmp_path / "own").mkdir()
    if owner == 4711:
        assert started_in(tmp_path, monkeypatch, owner=owner)
        return
    with pytest.raises(Stopped) as error:
        started_in(tmp_path, monkeypatch, owner=owner)
    assert error.value.findings[0].code == "GF271"
    said = "it belongs to the user 4711, and belonged to 4712 then"
    assert said in error.value.findings[0].message


def test_root_may_have_the_folder_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    upgrade_record.enter(Order("prod.py", "/", owner=4712), "r")


def test_a_step_selects_its_hosts_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyinfra would take the name for that of a group."""
    monkeypatch.chdir(tmp_path)
    words = step_words("prod.py", ("-v",))(["h100", "@local"], ["--data", "a=b"])
    given = words[words.index("--limit") :]
    limit = ["--limit", "[h]100", "--limit", "@[l]ocal"]
    assert given[:-1] == [*limit, "-v", "--data", "a=b", "prod.py"]


@pytest.mark.parametrize(
    ("value", "reboot", "drain"),
    [("if_needed", "if_needed", "all"), ("never", "never", "gpu"), ("maybe", "", "gpu")],
)
def test_what_leaves_a_node_depends_on_its_reboot(value: str, reboot: str, drain: str) -> None:
    target = Target("h", ("gpu_nodes",), {"node_reboot": value})
    assert upgrade_run._reboot_of(target) == reboot
    assert upgrade_run._settings(target, "driver").drain == drain


@pytest.mark.parametrize(
    ("drain", "in_cluster", "reboots"),
    [
        ("gpu", True, {"h": "never"}),  # pods without a GPU stay on it
        ("gpu", False, {}),
        ("all", True, {}),
        ("auto", True, {}),
    ],
)
def test_no_step_reboots_a_node_under_pods_that_stay(
    drain: str, in_cluster: bool, reboots: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"h": NodeAt("n", "file", "")} if in_cluster else {}
    monkeypatch.setattr(Children, "step", lambda *_: {"h": Result(True)})
    monkeypatch.setattr(upgrade_run, "_view", lambda name, seen: HOST)
    monkeypatch.setattr(upgrade_run, "accesses_of", lambda inventory: [])
    monkeypatch.setattr(upgrade_run, "find_nodes", lambda views, *_: (views, places))
    monkeypatch.setattr(upgrade_run, "ending_pods", lambda *_: {})
    target = Target("h", ("gpu_nodes",), {"node_reboot": "if_needed", "upgrade_drain": drain})
    run = upgrade_run.plan_run("i.py", [target], (), Wanted(), print, changes=False)
    assert run.order.reboots == reboots


def test_a_terminal_that_goes_away_ends_neither_run_nor_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are sent SIGHUP; so is the process that forks for the steps."""
    (tmp_path / "own").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    hung: list[int] = []

    def mine(number: int, frame: FrameType | None) -> None:
        hung.append(number)

    before = signal.signal(signal.SIGHUP, mine)
    ended: list[int] = []

    def carried(run: Run) -> End:
        os.kill(os.getpid(), signal.SIGHUP)
        ended.append(subprocess.run(["sh", "-c", "kill -HUP $$"], check=False).returncode)
        assert run.children._standby
        ended.append(ignored(run.children._standby.process.pid))
        return End("paused")

    monkeypatch.setattr(upgrade_run, "carry_on", carried)
    kept = {number: signal.getsignal(number) for number in SIGNALS}
    order = Order("prod.py", str(tmp_path / "own"), hosts={"h": {}})
    try:
        upgrade_run.carry_out(Store.create(order, planned()), print)
        assert (ended, hung) == ([0, 1], [])
        assert signal.getsignal(signal.SIGHUP) is mine
    finally:
        signal.signal(signal.SIGHUP, before)
        for number, handler in kept.items():
            signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_the_process_and_its_steps_but_not_the_run(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    stopped: list[bool] = []
    said: list[str] = []

    def carried(run: Run) -> End:
        os.kill(os.getpid(), number)
        stopped.append(run.stopping.is_set())
        return End("interrupted")

    monkeypatch.setattr(upgrade_run, "carry_on", carried)
    store = Store.create(Order("prod.py", str(tmp_path), hosts={"h": {}}), planned())
    kept = {each: signal.getsignal(each) for each in SIGNALS}
    try:
        assert upgrade_run.carry_out(store, said.append) is SIGNALS[number]
    finally:
        for each, handler in kept.items():
            signal.signal(each, handler)
    assert stopped == [True]
    assert said[-1].startswith("interrupted; `gpufleet upgrade resume --run ")


def test_what_forks_for_the_steps_is_begun_so_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is loaded while the hosts are asked, before the run begins."""
    found: list[object] = []
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    monkeypatch.setattr(upgrade_run, "no_other", lambda *_: None)
    monkeypatch.setattr(
        upgrade_run, "Standby", lambda: found.append(signal.getsignal(signal.SIGHUP))
    )
    monkeypatch.setattr(upgrade_run, "accesses_of", lambda inventory: [])
    upgrade_run.plan_run("i.py", [], (), Wanted(), print, changes=True)
    after = signal.signal(signal.SIGHUP, before)
    assert (found, after) == ([signal.SIG_IGN], signal.SIG_DFL)


def ignored(pid: int) -> int:
    """1 where a process ignores SIGHUP."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = next(line for line in lines if line.startswith("SigIgn:")).split()[1]
    return int(mask, 16) >> (signal.SIGHUP - 1) & 1


@pytest.mark.parametrize(
    ("clusters", "plane", "wanted"),
    [
        ([{}], {}, [("", "")]),
        ([{"cluster_context": "prod"}], {}, [("", "prod")]),
        ([{"cluster_kubeconfig": "/k"}], {"kubernetes_kubeconfig": "/k"}, [("/k", "")]),
        ([], {"kubernetes_kubeconfig": "/k"}, [("/k", "")]),
        ([], {}, []),
    ],
)
def test_every_cluster_of_an_inventory_is_asked(
    clusters: list[dict[str, Any]],
    plane: dict[str, Any],
    wanted: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also one that has the kubeconfig of the user: its nodes would pass for plain hosts."""
    targets = [Target("@local", ("gpu_cluster",), data) for data in clusters]
    targets.append(Target("h", ("control_plane",), plane))
    monkeypatch.setattr(upgrade_inventory, "targets_of", lambda inventory, limit: targets)
    found = upgrade_inventory.accesses_of("prod.py")
    assert [(each.kubeconfig, each.context) for each in found] == wanted
    monkeypatch.setattr(upgrade_inventory, "load_targets", lambda inventory: targets)
    assert upgrade_inventory.accesses_now("prod.py") == found


def test_a_run_whose_inventory_is_gone_says_so() -> None:
    with pytest.raises(Stopped, match="GF003"):
        upgrade_inventory.accesses_now("/nosuch/prod.py")
