"""The events of a run in a file, one line each, and how it is said that a record is not written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from gpufleet.core.limits import MIB
from gpufleet.core.private_file import read_regular
from gpufleet.core.stopped import Stopped
from gpufleet.upgrade.findings.runs import RECORD_FULL, RECORD_UNWRITTEN
from gpufleet.upgrade.progress import Entry
from gpufleet.upgrade.states import Event

LARGEST = 256 * MIB  # of a record; that of 1,500 hosts has some
RESERVE = 64 * MIB  # of that, for the end of what was begun
BEGINNINGS = (Event.DRAIN_BEGAN.value,)


class Unwritten(Stopped):
    """A file of the record cannot be written, as on a full disk: no fault of a host or cluster. Or
    it would have more than is read of it."""


@contextmanager
def writing(file: Path) -> Iterator[None]:
    """What keeps a file of the record from being written ends the run. Raises Unwritten."""
    try:
        yield
    except OSError as error:
        problem = error.strerror or error
        raise Unwritten(RECORD_UNWRITTEN(file=file, problem=problem)) from error


class RecordFile:
    """The events; a last line that a killed process did not finish is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._whole = False  # whether it is known to end with a whole line

    def entries(self) -> Iterator[Entry]:
        """Raises OSError, or what `Entry.from_dict` does."""
        text = read_regular(self.path, LARGEST) if self.path.exists() else b""
        for line in text[: text.rfind(b"\n") + 1].splitlines():
            yield Entry.from_dict(json.loads(line))

    def append(self, entry: Entry) -> None:
        """Write down an event: it is on the disk when this returns, or nothing of it is there.
        Raises Unwritten."""
        line = json.dumps(entry.as_dict()).encode() + b"\n"
        with writing(self.path), self._opened() as file:
            if not self._whole:
                file.truncate(file.read().rfind(b"\n") + 1)
            end = file.seek(0, os.SEEK_END)
            self._require_room(end + len(line), entry.event)
            self._whole = False
            try:
                _write(file.fileno(), line)
            except OSError:
                file.truncate(end)
                raise
            self._whole = True

    def _require_room(self, size: int, event: str) -> None:
        """Raises Unwritten for an event with which the record would be too large."""
        most = LARGEST - (RESERVE if event in BEGINNINGS else 0)
        if size > most:
            run, most, whole = self.path.parent.name, most // MIB, LARGEST // MIB
            raise Unwritten(RECORD_FULL(file=self.path, most=most, whole=whole, run=run))

    def _opened(self) -> BinaryIO:
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        return open(handle, "r+b", buffering=0)


def _write(handle: int, data: bytes) -> None:
    """All of it, to the disk. Raises OSError."""
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]
    os.fsync(handle)
