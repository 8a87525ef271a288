"""Components of the distribution's archive (contrib, non-free, restricted) that are not open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpufleet.facts.model import ManagedFile, NodeFacts
from gpufleet.plan.files import FileWrite

PATH = "/etc/apt/sources.list.d/gpufleet-components.list"


@dataclass(frozen=True, slots=True)
class Entry:
    """One binary source of apt: an archive, a suite, and the components that are open."""

    url: str
    suite: str
    components: tuple[str, ...]
    signed_by: str = ""


def component_sources(wanted: tuple[str, ...], facts: NodeFacts) -> FileWrite | None:
    """A source list that opens the missing `wanted` components; None where all are open.

    The archives and suites are those that the host uses already for `main`.
    """
    entries = [entry for file in facts.files.values() for entry in _entries(file)]
    lines = []
    for base in dict.fromkeys(
        (e.url, e.suite, e.signed_by) for e in entries if "main" in e.components
    ):
        there = {
            component
            for entry in entries
            if (entry.url, entry.suite) == base[:2]
            for component in entry.components
        }
        missing = [component for component in wanted if component not in there]
        if missing:
            option = f"[signed-by={base[2]}] " if base[2] else ""
            lines.append(f"deb {option}{base[0]} {base[1]} {' '.join(missing)}")
    if not lines:
        return None
    return FileWrite(
        PATH, "# Written by gpufleet: the driver's packages.\n" + "\n".join(lines) + "\n"
    )


def _entries(file: ManagedFile) -> Iterable[Entry]:
    if not file.path.startswith("/etc/apt/sources.list") or not file.content:
        return ()
    if file.path.endswith(".sources"):
        return [entry for block in file.content.split("\n\n") for entry in _deb822(block)]
    return [entry for line in file.content.splitlines() for entry in _one_line(line)]


def _one_line(line: str) -> Iterable[Entry]:
    words = line.split("#", 1)[0].split()
    if len(words) < 4 or words[0] != "deb":
        return
    signed_by = ""
    if words[1].startswith("["):
        end = next((place for place, word in enumerate(words) if word.endswith("]")), 0)
        options = " ".join(words[1 : end + 1]).strip("[] ").split()
        signed_by = next((o[10:] for o in options if o.startswith("signed-by=")), "")
        words = [words[0], *words[end + 1 :]]
    if len(words) >= 4:
        yield Entry(words[1], words[2], tuple(words[3:]), signed_by)


def _deb822(block: str) -> Iterable[Entry]:
    fields: dict[str, list[str]] = {}
    key = ""
    for line in block.splitlines():
        if line.startswith("#"):
            continue
        if line[:1] in (" ", "\t"):
            fields.setdefault(key, []).extend(line.split())
        elif ":" in line:
            key, _, value = line.partition(":")
            key = key.strip().lower()
            fields[key] = value.split()
    if fields.get("enabled") == ["no"] or "deb" not in fields.get("types", []):
        return
    signed_by = " ".join(fields.get("signed-by", []))
    for url in fields.get("uris", []):
        for suite in fields.get("suites", []):
            yield Entry(url, suite, tuple(fields.get("components", ())), signed_by)
