"""A file that should be on a host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpufleet.facts.model import NodeFacts


@dataclass(frozen=True, slots=True)
class FileWrite:
    """One file with its whole content. Binary content has the type bytes."""

    path: str
    content: str | bytes
    mode: int = 0o644

    @property
    def data(self) -> bytes:
        return self.content.encode() if isinstance(self.content, str) else self.content

    def is_on(self, facts: NodeFacts) -> bool:
        """True if the host has the file with this content and, for a secret, no wider mode."""
        there = facts.files.get(self.path)
        if there is None or there.content is None or there.content != self.content:
            return False
        return bool(self.mode & 0o077) or not there.mode & 0o077


def edited_paths(files: Iterable[FileWrite], facts: NodeFacts) -> tuple[str, ...]:
    """Paths of `files` that were edited after a run wrote them.

    The host's record has the sha256 of the written content. A deleted file is not edited.
    """
    recorded = facts.provenance.files
    found = []
    for file in files:
        there = facts.files.get(file.path)
        if there and there.sha256 and there.sha256 != recorded.get(file.path, there.sha256):
            found.append(file.path)
    return tuple(found)
