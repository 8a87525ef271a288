"""gpufleet's own files on a host, and functions that parse them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gpufleet.facts.model import ManagedFile, NodeFacts
from gpufleet.facts.record import EMPTY_RECORD, HostRecord, read_record

HOME = "/var/lib/gpufleet"
INCOMING = f"{HOME}/incoming"  # uploads of a run, until the step that needs them
RECORD_PATH = f"{HOME}/provenance.json"
WRITTEN_NOTES = f"{HOME}/written"  # a line for each write: path, sha256 before, sha256 after
BACKUPS = f"{HOME}/backup"  # copies of replaced files
NOTES = f"{HOME}/runtimes"  # a file for each runtime, with its part of the record
# Names that a transaction of the driver role begins to install; removed once recorded.
DRIVER_BEGUN_PATH = f"{HOME}/driver.before.begun"
TOOLKIT_BEGUN = f"{HOME}/toolkit.before.begun"
WRITTEN_PATHS = ("/", "/usr", "/var")  # that steps of every role write to
MIN_FREE = 50_000_000  # bytes for files, lists of packages, and small packages


def full_paths(facts: NodeFacts) -> list[str]:
    """The paths without space for any step of a run."""
    free = {path: facts.free_bytes.get(path) for path in WRITTEN_PATHS}
    return [path for path, left in free.items() if left is not None and left < MIN_FREE]


def parse_notes(files: Mapping[str, ManagedFile]) -> dict[str, Any]:
    """Runtime -> notes of a run about changes that it did not record. Skips damaged notes."""
    notes: dict[str, Any] = {}
    for path, file in files.items():
        folder, _, name = path.rpartition("/")
        if folder != NOTES or file.content is None:
            continue
        try:
            note = json.loads(file.content)
        except (ValueError, RecursionError):
            continue
        if isinstance(note, dict):
            notes[name.removesuffix(".json")] = note
    return notes


def parse_provenance(
    file: ManagedFile | None, written: ManagedFile | None = None
) -> tuple[HostRecord, str]:
    """The record of the installation, and the reason if it cannot be used, or else "".
    `written`: notes of writes, those of runs that failed before they recorded them included."""
    if file is None or file.content is None:
        return EMPTY_RECORD, file.error if file else ""
    try:
        return _as_written(read_record(file.content), (written and written.content) or ""), ""
    except ValueError as error:
        return EMPTY_RECORD, str(error)


def _as_written(record: HostRecord, notes: str) -> HostRecord:
    """The record with the sha256 of the last write of each of its files."""
    last = {
        words[0]: words[2] for line in notes.splitlines() if len(words := line.split("\t")) == 3
    }
    files = {path: last.get(path, digest) for path, digest in record.files.items()}
    return record if files == record.files else record.model_copy(update={"files": files})
