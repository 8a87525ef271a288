"""What the host's record says of the toolkit, and of what was changed in files of runtimes."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field, ValidationError

from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import Entry, Part
from gpufleet.toolkit.config.model import Edit, Record


class EditPart(Part):
    """One change of a file: see Edit."""

    path: list[str]
    value: Any
    before: str
    after: str
    existed: bool = False
    old: Any = None
    parents: int = 0


class ChangesPart(Part):
    """All that gpufleet changed in one file: see Record."""

    created: bool
    skeleton: str
    edits: list[EditPart]
    inherits: str = ""

    @property
    def record(self) -> Record:
        """The record that undoes the changes."""
        edits = tuple(
            Edit(
                tuple(edit.path),
                edit.value,
                edit.before,
                edit.after,
                edit.existed,
                edit.old,
                edit.parents,
            )
            for edit in self.edits
        )
        return Record(self.created, self.skeleton, edits, self.inherits)

    @classmethod
    def of(cls, record: Record) -> ChangesPart:
        """What the host's record keeps of the changes of one file."""
        edits = [
            EditPart(
                path=list(edit.path),
                value=edit.value,
                before=edit.before,
                after=edit.after,
                existed=edit.existed,
                old=edit.old,
                parents=edit.parents,
            )
            for edit in record.edits
        ]
        return cls(
            created=record.created, skeleton=record.skeleton, edits=edits, inherits=record.inherits
        )


class FilePart(Part):
    """A configuration file that holds what is gpufleet's."""

    config: str = ""  # its path
    changes: ChangesPart | None = None


class RuntimePart(FilePart):
    """A runtime that gpufleet configured, with the file that counted in the last run."""

    default: bool = False
    user_keys: list[str] = Field(default_factory=list)  # settings of the user's that must survive
    # files of runs before it that still hold what is ours
    earlier: list[FilePart] = Field(default_factory=list)


class CdiPart(Part):
    """The CDI spec that gpufleet keeps."""

    path: str = ""
    driver: str | None = None  # version that it was made for
    created: bool = False  # there was none before


class PendingPart(Part):
    """A unit that was to be restarted and was left to the user."""

    boot_id: str = ""
    started: str = ""  # when it was started last, in microseconds since the boot
    reason: str = ""


class ToolkitEntry(Entry):
    """The toolkit that gpufleet installed, and the runtimes that it configured."""

    role: ClassVar[str] = "toolkit"

    runtimes: dict[str, RuntimePart] = Field(default_factory=dict)  # by key of NodeFacts.runtimes
    cdi: CdiPart = CdiPart()
    pending: dict[str, PendingPart] = Field(default_factory=dict)  # by unit
    repository: str | None = None
    keyring: str | None = None
    source_file: str | None = None


def recorded_runtimes(facts: NodeFacts) -> dict[str, RuntimePart]:
    """What gpufleet wrote for each runtime: by the journal of an unrecorded run, else by the
    record. A damaged note counts for nothing."""
    runtimes = dict(facts.provenance.entry(ToolkitEntry).runtimes)
    for key, note in facts.noted_runtimes.items():
        try:
            runtimes[key] = RuntimePart.model_validate(note)
        except ValidationError:
            continue
    return runtimes
