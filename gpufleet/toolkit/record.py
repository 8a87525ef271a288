"""The toolkit in the host's record, and the changes of runtimes' files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

from pydantic import Field, ValidationError

from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import RecordPart, RoleEntry
from gpufleet.formats.model import Edit, EditRecord


class EditPart(RecordPart):
    """One change of a file: see Edit."""

    path: list[str]
    value: Any
    before: str
    after: str
    existed: bool = False
    old: Any = None
    parents: int = 0


class ChangesPart(RecordPart):
    """gpufleet's changes of one file: see Record."""

    created: bool
    skeleton: str
    edits: list[EditPart]
    inherits: str = ""

    @property
    def record(self) -> EditRecord:
        """The record that reverts the changes."""
        edits = tuple(Edit(**{**vars(edit), "path": tuple(edit.path)}) for edit in self.edits)
        return EditRecord(self.created, self.skeleton, edits, self.inherits)

    @classmethod
    def of(cls, record: EditRecord) -> ChangesPart:
        """The changes of one file for the host's record."""
        edits = [EditPart(**{**asdict(edit), "path": list(edit.path)}) for edit in record.edits]
        return cls(
            created=record.created, skeleton=record.skeleton, edits=edits, inherits=record.inherits
        )


class FilePart(RecordPart):
    """A configuration file with settings of gpufleet."""

    config: str = ""  # its path
    changes: ChangesPart | None = None


class RuntimePart(FilePart):
    """A runtime that gpufleet configured, with its effective file in the last run."""

    default: bool = False
    user_keys: list[str] = Field(default_factory=list)  # the user's settings that must stay
    # files of earlier runs that still have our settings
    earlier: list[FilePart] = Field(default_factory=list)


class CdiPart(RecordPart):
    """The CDI spec that gpufleet manages."""

    path: str = ""
    driver: str | None = None  # version that it was generated for
    created: bool = False  # gpufleet created the file


class PendingPart(RecordPart):
    """A unit whose restart is left to the user."""

    boot_id: str = ""
    started: str = ""  # last start, in microseconds since boot
    reason: str = ""


class ToolkitEntry(RoleEntry):
    """The toolkit that gpufleet installed, and the runtimes that it configured."""

    role: ClassVar[str] = "toolkit"

    runtimes: dict[str, RuntimePart] = Field(default_factory=dict)  # by key of NodeFacts.runtimes
    cdi: CdiPart = CdiPart()
    pending: dict[str, PendingPart] = Field(default_factory=dict)  # by unit
    repository: str | None = None
    keyring: str | None = None
    source_file: str | None = None


def recorded_runtimes(facts: NodeFacts) -> dict[str, RuntimePart]:
    """gpufleet's changes for each runtime: from the journal of an unrecorded run, else from the
    record. A damaged note is ignored."""
    runtimes = dict(facts.provenance.entry(ToolkitEntry).runtimes)
    for key, note in facts.noted_runtimes.items():
        try:
            runtimes[key] = RuntimePart.model_validate(note)
        except ValidationError:
            continue
    return runtimes
