"""What a merge is asked for, what it gives back, and the record that undoes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpufleet.core.findings import Finding

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a file: the setting at `path` got `value`, the text `before` became `after`.

    `old` is the value that was there; `existed` is False where there was none, and then `parents`
    is how many of the tables on the way to it were there.
    """

    path: Path
    value: Any
    before: str
    after: str
    existed: bool = False
    old: Any = None
    parents: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """All that we changed in one file; kept in the host's provenance to undo it later."""

    created: bool = False  # the file did not exist before us
    skeleton: str = ""  # what we put into a file that we created, before the edits
    edits: tuple[Edit, ...] = ()
    inherits: str = ""  # the runtime that ours took its options from

    def __bool__(self) -> bool:
        return self.created or bool(self.edits)

    @property
    def values(self) -> dict[Path, Any]:
        return {edit.path: edit.value for edit in self.edits}


@dataclass(frozen=True, slots=True)
class Reads:
    """docker: texts that are no JSON, and that the program reads all the same."""

    blank: bool = True  # nothing, or white space alone
    mark: bool = True  # a byte order mark before the object


@dataclass(frozen=True, slots=True)
class RuntimeWish:
    """What one runtime should be able to do. The plan fills it from settings, facts and catalog."""

    file: str  # path of the file, for messages
    name: str = "nvidia"
    binary: str = "/usr/bin/nvidia-container-runtime"
    default: bool = False  # make it the default runtime
    cdi: bool = False  # switch CDI on explicitly; False where it is on anyway or unknown
    effective: Mapping[str, Any] = field(default_factory=dict)  # all files together, as read
    fills_maps: bool = True  # containerd: built-in runtimes stay when a file names another one
    new_version: int = 2  # containerd: `version` of a configuration file that we create
    newest_version: int = 4  # containerd: the newest `version` that the program knows
    reads: Reads = Reads()


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge. `text` is None where no file is wanted, or the file is to go."""

    text: str | None
    changed: bool
    notes: tuple[Finding, ...] = ()
    record: Record = field(default_factory=Record)

    @property
    def blocked(self) -> bool:
        return any(note.blocks for note in self.notes)
