"""The record of a run on this machine: its plan, then one line for each event, never changed."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.paths import user_folder
from gpufleet.core.private_file import make_private, read_regular, why_not_of, write_private
from gpufleet.core.stopped import Stopped
from gpufleet.upgrade.findings import runs as findings
from gpufleet.upgrade.models import Plan
from gpufleet.upgrade.operations.record_file import LARGEST, RecordFile, writing
from gpufleet.upgrade.operations.run_names import new_name
from gpufleet.upgrade.order import Order
from gpufleet.upgrade.progress import OVER, Entry, Progress
from gpufleet.upgrade.show import run_state
from gpufleet.upgrade.states import WrongEvent
from gpufleet.upgrade.versions import SCHEMA, is_of_other_version, problem_of, require_schema

REQUESTS = ("pause", "abort")
LOOK = 1.0  # seconds for which others may look at a lock
DAMAGED = "damaged"  # folder of records that cannot be used
WRONG = (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError, WrongEvent)


def runs_folder() -> Path:
    """`$XDG_STATE_HOME/gpufleet/upgrades`, usually `~/.local/state/gpufleet/upgrades`. Raises
    NoHome."""
    return user_folder("XDG_STATE_HOME", ".local/state") / "gpufleet/upgrades"


@contextmanager
def creating() -> Iterator[None]:
    """One process at a time looks for other runs and creates its own."""
    folder = runs_folder()
    with writing(folder):
        make_private(folder)
    with alone_in(folder):
        yield


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """One process at a time. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _new_owner(folder: Path) -> int:
    """The user who has what this one creates in a folder: another one on some network file systems.
    Raises Stopped."""
    with writing(folder), TemporaryFile(dir=folder) as file:
        return os.fstat(file.fileno()).st_uid


class Store:
    """One run. Raises Stopped for a record that cannot be used, or not be written."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()  # the working directory may change
        self.name = path.name
        self._lock: int | None = None
        self._events = RecordFile(self.path / "record.jsonl")

    @classmethod
    def create(cls, order: Order, plan: Plan) -> Store:
        """A new run, with its lock taken."""
        store = cls(runs_folder() / new_name(each.name for each in cls.all()))
        head = {"schema": SCHEMA, "order": asdict(order), "plan": plan.as_dict()}
        store._write("run.json", json.dumps(head, indent=2) + "\n")
        store.lock()
        return store

    @classmethod
    def find(cls, name: str = "") -> Store:
        """The run of that name, or the newest one. Raises Stopped."""
        folder = runs_folder()
        known = [each for each in cls.all() if name == each.name or not (name or each.is_foreign)]
        if not known:
            raise Stopped(findings.NO_RUN(run=f"run {name}".rstrip(), folder=folder))
        known[-1].check_owner()
        return known[-1]

    @classmethod
    def all(cls) -> list[Store]:
        """Every run, the oldest first."""
        return [cls(path.parent) for path in sorted(runs_folder().glob("*/run.json"))]

    @property
    def is_foreign(self) -> bool:
        """Whether another user may have written the record."""
        try:
            self.check_owner()
        except Stopped:
            return True
        return False

    def check_owner(self) -> None:
        """What a record says is carried out as this user. Raises Stopped for one that another user
        has written."""
        for path in (self.path, self.path / "run.json"):
            try:
                why = why_not_of(path, {os.geteuid()})
                why = why and why_not_of(path, {_new_owner(self.path.parent)})
            except OSError as error:
                raise self.damaged(error) from error
            if why:
                raise self.damaged(why)

    def damaged(self, problem: object, name: str = "run.json") -> Stopped:
        """Why a file of the record cannot be used."""
        file, text = self.path / name, problem_of(problem)
        if is_of_other_version(problem):
            return Stopped(
                findings.OTHER_VERSION(file=file, problem=text, run=self.name, folder=self.path)
            )
        return Stopped(findings.RECORD_DAMAGED(file=file, problem=text))

    def lock(self) -> None:
        """Keep other processes from the run until this one ends. Raises Stopped."""
        if not self.is_taken():
            raise Stopped(findings.IN_PROGRESS(run=self.name))

    def is_taken(self) -> bool:
        """Whether this process carries out the run from now on; False while another one does."""
        with writing(self.path / "lock"):
            handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        ends = time.monotonic() + LOOK
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > ends:
                    os.close(handle)
                    return False
                time.sleep(LOOK / 20)  # `status` may be looking at it
            else:
                self._lock = handle
                self._raise_schema()
                return True

    def _raise_schema(self) -> None:
        """Keep earlier versions from a record that gets what they do not know. Raises Stopped."""
        try:
            data = self._data()
            require_schema(data["schema"])
        except WRONG:
            return  # who reads the record says why
        self._write("run.json", json.dumps(data | {"schema": SCHEMA}, indent=2) + "\n")

    def _data(self) -> Any:
        """Raises one of WRONG."""
        return json.loads(read_regular(self.path / "run.json", LARGEST))

    def reopen(self) -> None:
        """Carry on a run whose process has ended; what was asked of that one is done with. Raises
        Stopped."""
        with alone_in(self.path):
            self.lock()
            self._set_request("")

    def is_taken_to(self, word: str) -> bool:
        """Set the request; whether this process is to see to it. False while another one carries
        the run out: it has begun by now, and sees the request."""
        with alone_in(self.path):  # a process that reopens the run takes no later request back
            self._set_request(word)
            return self.is_taken()

    def release(self) -> None:
        """Leave the run to other processes."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def is_locked(self) -> bool:
        """Whether a process carries out the run. Several processes may look at a time. Raises
        Stopped where that cannot be said."""
        try:
            handle = os.open(self.path / "lock", os.O_RDONLY)
        except FileNotFoundError:
            return False
        except OSError as error:  # a process of another user may carry it out
            raise self.damaged(error, "lock") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    def set_aside(self, problem: object) -> Finding | None:
        """Move the record of a run that cannot be used away, so that it stops no other run; None
        while a process carries the run out. Raises Stopped."""
        if self.is_locked:
            return None
        place = runs_folder() / DAMAGED / self.name
        more = (place.with_name(f"{self.name}-{number}") for number in count(2))
        folder = next(each for each in chain([place], more) if not os.path.lexists(each))
        with writing(folder):
            make_private(place.parent)
            self.path.rename(folder)
        return findings.RECORD_SET_ASIDE(run=self.name, problem=problem, folder=folder)

    def head(self) -> tuple[Order, Plan]:
        """Raises Stopped."""
        self.check_owner()
        return self._head()

    def _head(self) -> tuple[Order, Plan]:
        try:
            data = self._data()
            require_schema(data["schema"])
            return Order.from_dict(data["order"]), Plan.from_dict(data["plan"])
        except WRONG as error:
            raise self.damaged(error) from error

    def inventory(self) -> str:
        """The path of the inventory, also in a record of another version; "" if it says none."""
        try:
            order = self._data()["order"]
            return str(os.path.realpath(os.path.join(order["folder"], order["inventory"])))
        except WRONG:
            return ""

    def progress(self) -> Progress:
        """Where the hosts are. Raises Stopped."""
        self.check_owner()
        return self.seen()[1]

    def seen(self) -> tuple[Order, Progress]:
        """What the record says, whoever wrote it: it is only shown. Raises Stopped."""
        order, plan = self._head()
        progress = Progress(plan)
        try:
            for entry in self.entries():
                progress.add(entry)
        except WRONG as error:
            raise self.damaged(error, "record.jsonl") from error
        return order, progress

    def entries(self) -> Iterator[Entry]:
        """The events. Raises one of WRONG."""
        return self._events.entries()

    @property
    def is_over(self) -> bool:
        """Whether the last event of the run is its end, whatever else the record has."""
        last = ""
        try:
            for entry in self.entries():
                last = last if entry.host else entry.event
        except WRONG:
            return False
        return last in OVER

    def append(self, entry: Entry) -> None:
        """Write down an event; it is on the disk when this returns."""
        self._events.append(entry)

    @property
    def request(self) -> str:
        """What another process asked of this run: "pause", "abort" or ""."""
        try:
            data = read_regular(self.path / "request", LARGEST)
        except (FileNotFoundError, PermissionError):  # the latter: it is none of this user
            return ""
        word = data.decode("utf-8", "replace").strip()
        return word if word in REQUESTS else ""

    def ask(self, word: str) -> None:
        """Set or, with "", take back the request."""
        with alone_in(self.path):
            self._set_request(word)

    def pause(self) -> str:
        """Ask the process that carries out the run to begin no more hosts; "", else why not. No
        abort is requested meanwhile. Raises Stopped."""
        with alone_in(self.path):
            progress, locked = self.progress(), self.is_locked
            if self.request == "abort":
                return "its abort is requested"
            if progress.over:
                return f"it is over ({progress.run})"
            if not locked:
                return f"no process carries it out ({run_state(progress, locked=locked)})"
            self._set_request("pause")
            return ""

    def _set_request(self, word: str) -> None:
        if word:
            self._write("request", word + "\n")
            return
        with writing(self.path / "request"):
            (self.path / "request").unlink(missing_ok=True)

    def _write(self, name: str, text: str) -> None:
        with writing(self.path / name):
            write_private(self.path / name, text, durable=True)
