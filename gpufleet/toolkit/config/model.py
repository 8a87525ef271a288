"""The input of a merge, its result, and the record that reverts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpufleet.core.findings import Finding

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a file: the setting at `path` got `value`, the text `before` became `after`.

    `old`: the previous value. `existed`: False if there was none; then `parents` is the number of
    tables along the path that existed.
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
class Reads:
    """docker: non-JSON texts that the program accepts."""

    blank: bool = True  # empty, or only white space
    mark: bool = True  # a byte order mark before the object


@dataclass(frozen=True, slots=True)
class DesiredRuntime:
    """The desired configuration of one runtime, from settings, facts and catalog."""

    file: str  # path of the file, for messages
    name: str = "nvidia"
    binary: str = "/usr/bin/nvidia-container-runtime"
    default: bool = False  # make it the default runtime
    cdi: bool = False  # enable CDI explicitly; False if it is on by default or unsupported
    effective: Mapping[str, Any] = field(default_factory=dict)  # all files together, as read
    fills_maps: bool = True  # containerd: built-in runtimes stay if a file names another one
    new_version: int = 2  # containerd: `version` of a configuration file that we create
    newest_version: int = 4  # containerd: the newest `version` that the program supports
    reads: Reads = Reads()


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge. `text` is None if no file is needed, or the file is to be removed."""

    text: str | None
    changed: bool
    notes: tuple[Finding, ...] = ()
    record: Record = field(default_factory=Record)

    @property
    def blocked(self) -> bool:
        return any(note.blocks for note in self.notes)
