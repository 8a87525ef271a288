"""A file that should be on a host."""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.facts.model import NodeFacts


@dataclass(frozen=True, slots=True)
class FileWrite:
    """One file with its whole content. Binary content comes as bytes."""

    path: str
    content: str | bytes
    mode: int = 0o644

    @property
    def data(self) -> bytes:
        return self.content.encode() if isinstance(self.content, str) else self.content

    def is_on(self, facts: NodeFacts) -> bool:
        """Whether the host has the file with this very content, and no wider mode for a secret."""
        there = facts.files.get(self.path)
        if there is None or there.content is None or there.content != self.content:
            return False
        return bool(self.mode & 0o077) or not there.mode & 0o077
