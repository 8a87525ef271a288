"""The record of a run survives kills, keeps others out, and says when it is damaged."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from gpufleet.core.stopped import Stopped
from gpufleet.upgrade.models import HostView
from gpufleet.upgrade.operations.store import Store, creating, runs_folder
from gpufleet.upgrade.order import Order
from gpufleet.upgrade.plan import make_plan
from gpufleet.upgrade.progress import Entry
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.upgrade.states import Event, State

HOST = HostView("h", "a", "d", "k", "580.1", "580.1", "580.2")
ORDER = Order("prod.py", "/", ("-v",), hosts={"h": {}})


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Store.create(ORDER, make_plan([HOST], UpgradeSettings.model_validate({})))


def code(error: pytest.ExceptionInfo[Stopped]) -> str:
    return error.value.findings[0].code


def test_a_run_is_found_again(store: Store) -> None:
    store.append(Entry(1.0, "begun"))
    store.append(Entry(2.0, Event.REFUSED.value, "h", "why"))
    found = Store.find()
    assert found.name == store.name
    assert found.head()[0] == ORDER
    progress = found.progress()
    assert progress.states == {"h": State.REFUSED}
    assert progress.reasons == {"h": "why"}
    assert {path.stat().st_mode & 0o077 for path in store.path.iterdir()} == {0}


def test_a_line_that_a_killed_process_did_not_finish_is_none(store: Store) -> None:
    store.append(Entry(1.0, Event.PREPARED.value, "h"))
    with (store.path / "record.jsonl").open("a") as file:
        file.write('{"time": 2.0, "event": "drain b')
    again = Store(store.path)
    assert again.progress().states == {"h": State.READY}
    again.append(Entry(3.0, Event.DRAIN_BEGAN.value, "h"))
    assert again.progress().states == {"h": State.DRAINING}
    assert len(list(again.entries())) == 2


@pytest.mark.parametrize(
    "line",
    ["{", '{"time": 1, "event": "changed", "host": "h"}', '{"event": "?", "host": "h"}',
     '{"time": 1, "event": "prepared", "host": "other"}', "[]", "[" * 200_000,
     '{"time": 1%s, "event": "begun"}' % ("0" * 400), '{"time": 1e300, "event": "begun"}',
     '{"time": NaN, "event": "begun"}', '{"time": -1, "event": "begun"}', "\0" * 50],
)  # fmt: skip
def test_a_damaged_record_is_refused(store: Store, line: str) -> None:
    (store.path / "record.jsonl").write_text(line + "\n")
    with pytest.raises(Stopped) as error:
        store.progress()
    assert code(error) == "GF064"


@pytest.mark.parametrize(
    "text", ['{"schema": 0}', '{"schema": "2"}', '{"schema": 2', "", "5", "[" * 200_000, "\udcff"]
)
def test_a_damaged_plan_is_refused(store: Store, text: str) -> None:
    (store.path / "run.json").write_text(text, "utf-8", "surrogateescape")
    with pytest.raises(Stopped) as error:
        store.head()
    assert code(error) == "GF064"


@pytest.mark.parametrize(
    ("part", "change", "said"),
    [
        ("order", {"folder": 5}, "folder: "),
        ("order", {"inventory": None}, "inventory: "),
        ("order", {"inventory": "a\0b"}, "zero byte"),
        ("order", {"hosts": {"h": []}}, "hosts.h: "),
        ("order", {"later": 1, "folder": 5}, "folder: "),
        ("plan", {"waves": [{"hosts": ["zz"], "canary": True}]}, "it lacks: zz"),
        ("plan", {"waves": [{"hosts": [5], "canary": True}]}, "waves.0.hosts.0: "),
        ("plan", {"subject": 5, "kind": 5}, "kind: "),
    ],
)
def test_a_plan_of_wrong_types_is_refused(
    store: Store, part: str, change: dict[str, Any], said: str
) -> None:
    file = store.path / "run.json"
    data = json.loads(file.read_text())
    data[part] |= change
    file.write_text(json.dumps(data))
    with pytest.raises(Stopped) as error:
        store.head()
    assert code(error) == "GF064"
    assert said in error.value.findings[0].message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 99, "plan": {}}, "its schema is 99"),
        ({"plan": {"subject": "else"}}, "subject: Input should be 'driver', 'toolkit' or 'reboot'"),
        ({"order": {"later": 1}}, "later: Unexpected"),
        ({"plan": {"limits": {"later": 1}}}, "limits.later: Unexpected"),
    ],
)
def test_a_record_of_another_version_is_not_damaged(
    store: Store, change: dict[str, Any], said: str
) -> None:
    file = store.path / "run.json"
    data = json.loads(file.read_text())
    for part, new in change.items():
        data[part] = new if part == "schema" else data[part] | new
    file.write_text(json.dumps(data))
    with pytest.raises(Stopped) as error:
        store.head()
    assert code(error) == "GF289"
    assert said in error.value.findings[0].message


def test_a_record_whose_mode_a_volume_changed_is_used(store: Store) -> None:
    """As a volume of Kubernetes with fsGroup at each mount: the run has to go on."""
    for path in (store.path, store.path / "run.json"):
        path.chmod(path.stat().st_mode | 0o2070)
    assert store.head()[0] == ORDER
    assert not Store.find(store.name).is_foreign


@pytest.mark.parametrize("name", ["", "run.json"])
def test_a_record_of_another_user_is_refused(
    store: Store, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat, mine = Path.stat, os.geteuid()

    def of_other(path: Path, **how: Any) -> os.stat_result:
        found = stat(path, **how)
        if path != store.path / name:
            return found
        return os.stat_result((*found[:4], mine + 99999, *found[5:]))

    monkeypatch.setattr(Path, "stat", of_other)
    with pytest.raises(Stopped) as error:
        store.head()
    assert code(error) == "GF064"
    assert f"it belongs to the user {mine + 99999}" in error.value.findings[0].message


def test_a_record_of_who_has_all_new_files_is_used(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a network file system that takes root for another user."""
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert store.head()[0] == ORDER


def test_a_record_is_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "a")
    made = Store.create(ORDER, make_plan([HOST], UpgradeSettings.model_validate({})))
    monkeypatch.chdir(tmp_path / "b")
    assert made.head()[0] == ORDER


def test_a_request_that_cannot_be_read_ends_no_run(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path, most: int) -> bytes:
        raise PermissionError(13, "Permission denied")

    store.ask("pause")
    monkeypatch.setattr("gpufleet.upgrade.operations.store.read_regular", refused)
    assert store.request == ""


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_folders_of_records_are_for_their_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "a/b"))
    before = os.umask(umask)
    try:
        with creating():
            pass
    finally:
        os.umask(before)
    for folder in (tmp_path / "a", tmp_path / "a/b", runs_folder().parent, runs_folder()):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_run_is_on_the_disk_before_its_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    synced: list[Path] = []
    fsync = os.fsync

    def noted(handle: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    made = Store.create(ORDER, make_plan([HOST], UpgradeSettings.model_validate({})))
    assert synced[0].name.startswith(".run.json.")  # before it has its name
    assert synced[1:] == [made.path, made.path.parent, made.path.parents[1], tmp_path]


def test_one_process_at_a_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpufleet.upgrade.operations.store.LOOK", 0.01)
    other = Store(store.path)
    assert other.is_locked
    with pytest.raises(Stopped) as error:
        other.lock()
    assert code(error) == "GF061"


def test_requests_are_set_and_taken_back(store: Store) -> None:
    assert store.request == ""
    store.ask("pause")
    assert Store(store.path).request == "pause"
    store.ask("")
    assert store.request == ""


def test_a_request_that_is_no_text_is_none(store: Store) -> None:
    file = store.path / "request"
    file.touch(0o600)
    file.write_bytes(b"\xff\xfe")
    assert store.request == ""
    store.ask("abort")
    assert store.request == "abort"


def test_a_request_that_is_taken_back_meanwhile_is_none(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "exists", lambda path: True)
    assert store.request == ""


def test_no_abort_comes_between_the_look_for_one_and_a_pause(store: Store) -> None:
    store.append(Entry(1.0, "begun"))
    other = Store(store.path)
    aborting = threading.Thread(target=lambda: other.ask("abort"))

    class Looking(Store):
        @property
        def request(self) -> str:
            found = super().request
            aborting.start()
            aborting.join(0.05)  # it ends by now, if nothing keeps it
            return found

    assert Looking(store.path).pause() == ""
    aborting.join()
    assert store.request == "abort"
    assert "abort is requested" in store.pause()


def test_a_run_that_is_continued_forgets_what_was_asked_before(store: Store) -> None:
    store.release()
    store.ask("pause")
    store.reopen()
    assert (store.request, Store(store.path).is_locked) == ("", True)


def test_a_run_that_is_at_work_is_not_reopened(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpufleet.upgrade.operations.store.LOOK", 0.01)
    store.ask("abort")
    with pytest.raises(Stopped) as error:
        Store(store.path).reopen()
    assert (code(error), store.request) == ("GF061", "abort")


@pytest.mark.parametrize("word", ["abort", "pause"])
def test_a_request_while_a_run_is_reopened_is_not_lost(
    word: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the lock that it takes and the old request that it takes back."""
    monkeypatch.setattr("gpufleet.upgrade.operations.store.LOOK", 0.01)
    store.release()
    other, lock = Store(store.path), store.lock
    ask = other.is_taken_to if word == "abort" else other.ask
    answers: list[bool | None] = []
    asking = threading.Thread(target=lambda: answers.append(ask(word)))

    def locked() -> None:
        lock()
        asking.start()
        asking.join(0.05)  # it ends by now, if nothing keeps it

    monkeypatch.setattr(store, "lock", locked)
    store.reopen()
    asking.join()
    assert store.request == word
    assert answers == [False if word == "abort" else None]


def test_a_look_at_the_lock_keeps_nobody_out(store: Store) -> None:
    """`status` looks while `resume` begins."""
    other = Store(store.path)
    with (store.path / "lock").open() as looking:
        store.release()
        fcntl.flock(looking, fcntl.LOCK_SH)
        threading.Timer(0.1, fcntl.flock, (looking, fcntl.LOCK_UN)).start()
        other.lock()
    assert Store(store.path).is_locked


def test_a_record_that_cannot_be_used_is_set_aside(store: Store) -> None:
    (store.path / "run.json").write_text("{")
    assert store.set_aside("why") is None  # this process carries it out
    store.release()
    found = Store(store.path).set_aside("why")
    assert found is not None
    assert found.code == "GF075"
    folder = runs_folder() / "damaged" / store.name
    assert str(folder) in found.message
    assert (folder / "run.json").read_text() == "{"
    assert Store.all() == []


def test_a_record_is_set_aside_beside_earlier_ones(store: Store) -> None:
    store.release()
    for name in (store.name, f"{store.name}-2"):
        (runs_folder() / "damaged" / name).mkdir(parents=True)
        (runs_folder() / "damaged" / name / "run.json").touch()
    assert store.set_aside("why")
    assert (runs_folder() / f"damaged/{store.name}-3/run.json").is_file()


def test_no_run(store: Store) -> None:
    with pytest.raises(Stopped) as error:
        Store.find("other")
    assert code(error) == "GF063"
    assert f"There is no run other in {runs_folder()}." in error.value.findings[0].message


def test_no_runs_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(Stopped) as error:
        Store.find("")
    assert f"There is no run in {runs_folder()}." in error.value.findings[0].message
