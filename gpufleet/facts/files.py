"""gpufleet's own files on a host, and what is read from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gpufleet.facts.model import ManagedFile
from gpufleet.facts.record import NO_RECORD, HostRecord, read_record

HOME = "/var/lib/gpufleet"
INCOMING = f"{HOME}/incoming"  # what a run sends to the host, until the step that needs it
PROVENANCE = f"{HOME}/provenance.json"
BACKUPS = f"{HOME}/backup"  # folder of what a run replaced
NOTES = f"{HOME}/runtimes"  # folder of a file for each runtime, as its part of the record
# Names that a transaction of the driver role was about to install; gone once they are recorded.
BEGUN = f"{HOME}/driver.before.begun"
TOOLKIT_BEGUN = f"{HOME}/toolkit.before.begun"


def parse_notes(files: Mapping[str, ManagedFile]) -> dict[str, Any]:
    """By runtime, what a run noted before it wrote, and did not come to record; damaged: none."""
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


def parse_provenance(file: ManagedFile | None) -> tuple[HostRecord, str]:
    """The record of what was installed, and why it cannot be used ("" when it can, or is not)."""
    if file is None or file.content is None:
        return NO_RECORD, file.error if file else ""
    try:
        return read_record(file.content), ""
    except ValueError as error:
        return NO_RECORD, str(error)
