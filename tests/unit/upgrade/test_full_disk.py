"""A controller whose disk is full: a run ends, and its record stays whole."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gpufleet.cli import main, upgrade_run
from gpufleet.core.stopped import Stopped
from gpufleet.upgrade.findings.runs import RECORD_UNWRITTEN
from gpufleet.upgrade.operations.children import Children
from gpufleet.upgrade.operations.store import Store, creating, runs_folder
from gpufleet.upgrade.order import Order
from gpufleet.upgrade.progress import Entry
from gpufleet.upgrade.states import Event
from tests.unit.upgrade.running import DRAINED, planned

pytestmark = pytest.mark.usefixtures("own_folder")


@contextmanager
def full_disk(most: int = 0) -> Iterator[None]:
    """No file gets longer than so many bytes meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def unwritten(call: Callable[[], Any]) -> str:
    """The message of the finding that a call ends with."""
    with pytest.raises(Stopped) as error:
        call()
    assert [each.code for each in error.value.findings] == [RECORD_UNWRITTEN.code]
    return error.value.findings[0].message


def gone(*events: Event) -> Store:
    """A run whose process is gone."""
    made = Store.create(Order("prod.py", "/", hosts={"h": {}}), planned())
    for event in events:
        made.append(Entry(1.0, event.value, "h"))
    made.release()
    return Store(made.path)


@pytest.mark.parametrize("room", [0, 40])
def test_an_event_that_is_not_written_whole_is_none(room: int) -> None:
    store = gone(Event.PREPARED)
    file = store.path / "record.jsonl"
    before = file.read_bytes()
    with full_disk(len(before) + room):
        said = unwritten(lambda: store.append(Entry(2.0, Event.DRAIN_BEGAN.value, "h")))
    assert str(file) in said
    assert "File too large" in said
    assert file.read_bytes() == before
    store.append(Entry(3.0, Event.DRAIN_BEGAN.value, "h"))
    assert [each.time for each in Store(store.path).entries()] == [1.0, 3.0]


def test_an_event_that_may_not_be_on_the_disk_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    store = gone(Event.PREPARED)

    def lost(handle: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lost)
        assert "Input/output error" in unwritten(lambda: store.append(Entry(2.0, "resumed")))
    store.append(Entry(3.0, "resumed"))
    assert [each.time for each in store.entries()] == [1.0, 3.0]


@pytest.mark.parametrize("schema", [2, 3])
@pytest.mark.parametrize("command", ["abort", "resume"])
def test_a_command_on_a_full_disk_says_what_is_to_be_done(command: str, schema: int) -> None:
    """Not that the record is damaged, nor to move it away: it is the only one of its nodes."""
    store = gone(*DRAINED)
    file = store.path / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema": schema}))
    before = {path: path.read_bytes() for path in store.path.iterdir()}
    with full_disk():
        result = CliRunner().invoke(main, ["upgrade", command])
    assert result.exit_code == 1
    assert f"{RECORD_UNWRITTEN.code} {store.path}" in result.output
    assert "File too large" in result.output
    assert "`gpufleet upgrade resume --run RUN`" in result.output
    assert {path: path.read_bytes() for path in store.path.iterdir()} == before


def test_a_pause_that_cannot_be_requested() -> None:
    store = Store.create(Order("prod.py", "/"), planned())
    with full_disk():
        assert str(store.path / "request") in unwritten(Store(store.path).pause)


def test_a_run_that_cannot_be_created() -> None:
    with creating(), full_disk():
        said = unwritten(lambda: Store.create(Order("prod.py", "/"), planned()))
    assert "run.json" in said


def test_a_folder_of_records_that_cannot_be_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(Stopped):
        creating().__enter__()


def test_a_step_whose_output_cannot_be_kept(tmp_path: Path) -> None:
    children = Children(lambda hosts, options: ["true"], "/", tmp_path / "gone", "r")
    assert "step-0001-look.log" in unwritten(lambda: children.step("look", ["h"]))


def test_a_damaged_record_that_cannot_be_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    store = gone(Event.PREPARED)

    def refused(path: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", refused)
    assert str(runs_folder() / "damaged") in unwritten(lambda: store.set_aside("why"))


def test_a_run_on_a_disk_that_is_read_only_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lock is only looked at."""
    store, opened = gone(Event.PREPARED), os.open
    store.is_taken()
    store.release()

    def read_only(path: Any, flags: int, *how: Any, **named: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(30, "Read-only file system")
        return opened(path, flags, *how, **named)

    monkeypatch.setattr(os, "open", read_only)
    assert not store.is_locked
    assert str(store.path / "lock") in unwritten(store.is_taken)


def test_whose_record_it_is_cannot_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a network file system that takes root for another user."""
    store = gone(Event.PREPARED)

    def full(**how: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    monkeypatch.setattr("gpufleet.upgrade.operations.store.TemporaryFile", full)
    assert str(runs_folder()) in unwritten(store.head)


def test_a_run_ends_at_the_first_event_that_is_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before anything is done with its hosts."""
    store = gone(Event.PREPARED)
    begun: list[Any] = []
    monkeypatch.setattr(upgrade_run, "carry_on", begun.append)
    monkeypatch.setattr(upgrade_run.signal, "signal", lambda *args: None)
    monkeypatch.setattr(upgrade_run, "enter", lambda *args: None)
    with full_disk():
        unwritten(lambda: upgrade_run.carry_out(store, lambda line: None))
    assert begun == []
