"""The sections of a host's facts. NAME.sh prints a section on the host; a module here parses it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

SECTIONS = (
    "identity", "os", "kernel", "pci", "modules", "modinfo", "library", "dkms", "devices",
    "packages", "trust", "lock", "services", "runtimes", "gpu", "smi", "collectors", "space",
    "oddities", "cdi", "files", "kubernetes", "end",
)  # fmt: skip
ON_REQUEST = ("health", "answers", "kubelet", "metrics")
T = TypeVar("T")


class FactsError(Exception):
    """The facts of a host cannot be read. `section` names the part, the message the reason."""

    def __init__(self, section: str, why: str) -> None:
        super().__init__(f"facts of the host, section {section}: {why}")
        self.section = section


class Sections:
    """The lines of every section, and a parser that names the section of an error."""

    def __init__(self, lines: Iterable[str], mark: str) -> None:
        """`mark`: the prefix of the lines between sections. Lines before the first mark and after
        the last one come from other programs and are left out.

        Raises FactsError if a section is missing, as in output that was cut off.
        """
        self._lines: dict[str, list[str]] = {}
        current: list[str] = []
        ended = False
        for line in lines:
            if line == mark:
                ended = True
                break
            if line.startswith(mark) and line[len(mark) :] in (*SECTIONS, *ON_REQUEST):
                current = self._lines.setdefault(line[len(mark) :], [])
            else:
                current.append(line)
        for name in SECTIONS:
            if name not in self._lines or (name == SECTIONS[-1] and not ended):
                raise FactsError(name, "it is missing: the output of the host was cut off")

    def __contains__(self, name: str) -> bool:
        return name in self._lines

    def parse(self, name: str, parser: Callable[[Sequence[str]], T]) -> T:
        """Parse a section with `parser`. Its ValueError or LookupError becomes FactsError."""
        try:
            return parser(self._lines[name])
        except (ValueError, LookupError) as error:
            raise FactsError(name, str(error)) from error


def split_records(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    """First word and rest of every line that is not empty."""
    for line in lines:
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            yield word, rest.strip()
