"""Which run a command is for: the one that is named, or the only one that it can be."""

from __future__ import annotations

import calendar
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpufleet.cli import main, upgrade
from gpufleet.cli.upgrade_runs import no_other, to_change
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.stopped import Stopped
from gpufleet.upgrade.operations.store import Store, runs_folder
from gpufleet.upgrade.order import Order
from gpufleet.upgrade.progress import Entry
from gpufleet.upgrade.states import Event
from gpufleet.upgrade.subjects import Subject
from tests.unit.upgrade.running import CHANGING, planned


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("gpufleet.upgrade.operations.store.LOOK", 0.01)


def made(*events: str, inventory: str = "prod.py", folder: str = "/") -> Store:
    """A run, its lock taken."""
    store = Store.create(Order(inventory, folder), planned())
    for event in events:
        store.append(Entry(1.0, event))
    return store


def gone(*events: str, inventory: str = "prod.py", folder: str = "/") -> Store:
    """A run whose process has ended."""
    store = made(*events, inventory=inventory, folder=folder)
    store.release()
    return store


def done(*words: str) -> Result:
    return CliRunner().invoke(main, ["upgrade", *words])


def test_an_abort_is_not_taken_back_by_a_pause() -> None:
    store = made("begun")
    store.ask("abort")
    assert "its abort is requested" in done("pause", "--run", store.name).output
    assert store.request == "abort"
    store.release()


def test_a_record_that_cannot_be_read_may_be_the_one_that_is_meant() -> None:
    damaged = gone("begun", inventory="other.py")
    (damaged.path / "run.json").write_text("{")
    gone("begun")
    found = done("abort")
    assert f"{damaged.name} (its record cannot be used)" in found.output
    assert found.exit_code == 1


def test_a_run_of_another_version_that_is_over_is_not_the_one_that_is_meant() -> None:
    for last in ("finished", "paused"):
        theirs = gone("begun", last, inventory="other.py")
        (theirs.path / "run.json").write_text('{"schema": 99}')
        mine = gone("begun", inventory=f"{last}.py")
        if last == "finished":
            assert to_change("").name == mine.name
    assert f"{theirs.name} (its record cannot be used)" in done("abort").output


@pytest.mark.parametrize(
    ("events", "why"),
    [
        (["begun", "finished"], "it is over (finished)"),
        (["begun", "aborted"], "it is over (aborted)"),
        (["begun"], "no process carries it out (interrupted)"),
        (["begun", "paused"], "no process carries it out (paused)"),
    ],
)
def test_a_run_that_no_process_carries_out_is_not_paused(events: list[str], why: str) -> None:
    run = gone(*events)
    found = done("pause")
    assert (found.exit_code, f"GF283 Run {run.name} cannot be paused: {why}" in found.output) == (
        1, True
    ), found.output  # fmt: skip
    assert run.request == ""


def test_a_run_at_work_is_paused() -> None:
    run = made("begun")
    found = done("pause")
    assert (found.exit_code, run.request) == (0, "pause")
    assert f"`gpufleet upgrade resume --run {run.name}`" in found.output


@pytest.mark.parametrize("command", ["pause", "abort", "resume", "rollback"])
def test_a_command_guesses_no_run(command: str) -> None:
    runs = [gone("begun"), gone("begun", "paused", inventory="test.py")]
    gone("begun", "finished")
    found = done(command)
    assert found.exit_code == 1
    assert "GF282 Several runs are not finished: " in found.output
    assert f"{runs[0].name} over prod.py (interrupted)" in found.output
    assert f"{runs[1].name} over test.py (paused)" in found.output
    assert runs[0].request == runs[1].request == ""
    assert "GF282" not in done(command, "--run", "lost").output


@pytest.mark.parametrize(
    ("status", "ended"), [(None, 0), (ExitStatus.CONVERGED, 0), (ExitStatus.FAILED, 1)]
)
def test_an_abort_ends_with_the_status_of_its_run(
    status: ExitStatus | None, ended: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone("begun")
    monkeypatch.setattr(upgrade, "aborted", lambda store, say, is_gone: status)
    found = done("abort")
    assert found.exit_code == ended
    assert ("abort requested of the process" in found.output) is (status is None)


def test_one_unfinished_run_needs_no_name() -> None:
    gone("begun", "finished")
    run = made("begun", inventory="test.py")
    gone("begun", "finished")
    assert done("pause").exit_code == 0
    assert run.request == "pause"


@pytest.mark.parametrize("inventory", ["link.py", "../own/prod.py", "there/prod.py", "./prod.py"])
def test_an_inventory_is_the_same_by_another_path(inventory: str, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/prod.py").touch()
    (tmp_path / "own/link.py").symlink_to("prod.py")
    (tmp_path / "own/there").symlink_to(".")
    gone("begun", folder=str(tmp_path / "own"))
    with pytest.raises(Stopped) as error:
        no_other(str(tmp_path / "own" / inventory), print)
    assert error.value.findings[0].code == "GF062"
    no_other(str(tmp_path / "own/other.py"), print)


@pytest.mark.parametrize("locked", [True, False])
def test_an_unfinished_run_has_a_state_that_is_documented(locked: bool) -> None:
    run = made("begun")
    if not locked:
        run.release()
    with pytest.raises(Stopped) as error:
        no_other("/prod.py", print)
    found = error.value.findings[0]
    assert found.message.endswith("running." if locked else "interrupted.")
    assert f"`gpufleet upgrade resume --run {run.name}`" in found.remedy
    assert f"`gpufleet upgrade abort --run {run.name}`" in found.remedy


@pytest.mark.parametrize(
    ("subject", "what"), [("driver", "driver"), ("toolkit", "container toolkit")]
)
def test_a_roll_back_asks_about_what_the_run_changed(
    subject: Subject, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrade, "confirmed", lambda *_: None)
    store = Store.create(Order("prod.py", "/"), replace(planned(), subject=subject))
    for event in (*CHANGING, Event.CHANGED, Event.RETURNED):
        store.append(Entry(1.0, event.value, "h"))
    store.append(Entry(1.0, "finished"))
    store.release()
    found = CliRunner().invoke(main, ["upgrade", "rollback"], input="n\n")
    assert f"Return these hosts to their earlier {what}?" in found.output


@pytest.mark.parametrize("now", ["2024-12-31 23:59:59", "2026-01-01 00:00:00"])
def test_the_newest_run_is_the_one_that_was_begun_last(
    now: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after the clock was set back, and of two in one second."""
    at = [calendar.timegm(time.strptime("2026-01-01", "%Y-%m-%d"))]
    monkeypatch.setattr(time, "time", lambda: float(at[0]))
    runs = [gone("begun", "finished")]
    at[0] = calendar.timegm(time.strptime(now, "%Y-%m-%d %H:%M:%S"))
    for _ in range(5):
        runs.append(gone("begun", "finished"))
        assert Store.find().name == runs[-1].name
        assert to_change("", unfinished=False).name == runs[-1].name
    assert [store.name for store in Store.all()] == [store.name for store in runs]


def test_a_run_is_named_by_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever other folders are named."""
    monkeypatch.setattr(time, "time", lambda: 1767225600.5)
    for name in ("zz", "99999999-999999-abcdef", "20260101-000000"):
        (runs_folder() / name).mkdir(parents=True)
        (runs_folder() / name / "run.json").touch()
    assert gone("begun").name.startswith("20260101-000000-")
