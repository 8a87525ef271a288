"""The result of a merge, and the record that reverts it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpufleet.core.findings import Finding

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a file: the setting at `path` got `value`, the text `before` became `after`.

    `old`: the previous value. `existed`: whether it was set before; if not, `parents` is the
    number of tables along the path that existed.
    """

    path: Path
    value: Any
    before: str
    after: str
    existed: bool = False
    old: Any = None
    parents: int = 0


@dataclass(frozen=True, slots=True)
class EditRecord:
    """Our changes of one file, in the host's record, to revert them later."""

    created: bool = False  # we created the file
    skeleton: str = ""  # initial text of a file that we created
    edits: tuple[Edit, ...] = ()
    inherits: str = ""  # the runtime whose options ours inherits

    def __bool__(self) -> bool:
        return self.created or bool(self.edits)

    @property
    def values(self) -> dict[Path, Any]:
        return {edit.path: edit.value for edit in self.edits}


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge. `text` is None if no file is needed, or the file must go."""

    text: str | None
    changed: bool
    notes: tuple[Finding, ...] = ()
    record: EditRecord = field(default_factory=EditRecord)

    @property
    def blocked(self) -> bool:
        return any(note.blocks for note in self.notes)
