"""The documents of the repository, and the blocks of code in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
COMMANDS = ("", "bash", "console", "cron", "shell", "sh")  # "": a block without a language


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code: its language (empty if the block names no language) and its lines."""

    page: str
    language: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def name(self) -> str:
        """The first line without its comment: the key of the block in the table of commands."""
        return re.split(r"\s+#\s", self.lines[0])[0].strip()


@cache
def documents() -> dict[str, str]:
    """Path from the repository's root -> text."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    pages += [*ROOT.glob("roles/**/README.md"), *ROOT.glob("sandbox/README.md")]
    return {page.relative_to(ROOT).as_posix(): page.read_text() for page in sorted(pages)}


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a document, and the indented ones, which have no language."""
    lines = iter([*documents()[page].splitlines(), ""])
    blank = True
    for line in lines:
        if fence := re.match(r" *```(\w*)", line):
            inside = []
            for inner in lines:
                if inner.strip() == "```":
                    break
                inside.append(inner)
            yield Block(page, fence[1], tuple(inside))
        elif blank and re.match(r"    [^\s*-]", line):
            inside = [line]
            for inner in lines:
                if not inner.startswith("    "):
                    break
                inside.append(inner)
            yield Block(page, "", tuple(each[4:] for each in inside))
            line = ""
        blank = not line.strip()


def commands() -> list[Block]:
    """Every block of commands of every document."""
    return [block for page in documents() for block in blocks(page) if block.language in COMMANDS]
