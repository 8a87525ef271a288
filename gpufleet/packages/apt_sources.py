"""Reads apt's sources in its files: single lines and deb822 stanzas. Pure.

Syntax that this reader does not know is left to apt, in the trial of a new source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gpufleet.facts.model import ManagedFile

APT_SOURCES_PREFIX = "/etc/apt/sources.list"  # prefix of the paths of all source files
_LINE = re.compile(r"\s*(?P<type>deb|deb-src)\s+(?:\[(?P<options>[^]]*)\]\s*)?(?P<words>[^#]*)")
_READ = re.compile(r"[\w.-]+", re.ASCII)  # apt ignores files with other names
_OFF = ("no", "false", "without", "off", "disable", "0")  # apt's values for false
_ON = ("yes", "true", "with", "on", "enable", "1")
_PLACE = ("types", "uris", "suites", "components", "enabled")  # fields that are not options
_RENAMED = {"arch": "Architectures", "lang": "Languages", "target": "Targets"}
_ARCH = "$(ARCH)"  # sources.list(5): apt replaces it with the native architecture
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # of uname -m
# "Conflicting values set for option": sources of one archive and suite must not differ in these
# (apt 2.6.2, tried 2026-11-27; test_apt_conflicts.py asks the apt that is here).
_AGREED = (
    "allow-downgrade-to-insecure", "allow-insecure", "allow-weak", "check-date",
    "check-valid-until", "inrelease-path", "trusted",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AptSource:
    """One source: an archive, a suite, its enabled components, and its options.

    `options`: deb822 fields, name and value; a value can have several lines.
    """

    path: str
    url: str
    suite: str
    components: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    binary: bool = True  # False: deb-src

    @property
    def agreed(self) -> dict[str, str]:
        """The options that all sources of this archive and suite must share."""
        found = {name.lower(): _plain(value) for name, value in self.options}
        return {name: found[name] for name in _AGREED if found.get(name)}

    def option(self, name: str) -> str:
        """The value of an option, or "". Names are case-insensitive."""
        return next((value for key, value in self.options if key.lower() == name.lower()), "")


def read_entries(files: Mapping[str, ManagedFile]) -> list[AptSource]:
    """The enabled sources of a host."""
    return [
        entry
        for path, file in files.items()
        if path.startswith(APT_SOURCES_PREFIX)
        and _READ.fullmatch(path.rpartition("/")[2])
        and file.content
        for entry in _entries(path, file.content)
    ]


def conflicting_sources(entries: Iterable[AptSource], machine: str) -> dict[str, list[str]]:
    """Archive -> files with sources of it that apt rejects together, because an option differs.

    `machine`: as uname -m prints it. Files are read in apt's order: a key may follow a source
    without one, but not the other way round.
    """
    places: dict[tuple[str, str], list[AptSource]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.path != APT_SOURCES_PREFIX, entry.path)):
        places.setdefault(archive_place(entry.url, entry.suite, machine), []).append(entry)
    return {
        url: list(dict.fromkeys(entry.path for entry in alike))
        for (url, _), alike in places.items()
        if any(entry.agreed != alike[0].agreed for entry in alike) or _other_keys(alike)
    }


def archive_place(url: str, suite: str, machine: str) -> tuple[str, str]:
    """URL and suite of a source as apt compares them. `machine`: as uname -m prints it."""
    native = _ARCHITECTURES.get(machine, machine)
    url, suite = (text.replace(_ARCH, native) for text in (url, suite))
    return url.rstrip("/") + "/", suite


def other_lines(file: ManagedFile | None, place: tuple[str, str], key: str, machine: str) -> str:
    """The lines of a `.list` file that are not gpufleet's: without the source at `place`, and
    without sources with its `key`, which gpufleet wrote for an earlier address.

    Example: with place ("http://a/", "/"), `deb http://b/ /` remains of it and `deb http://a/ /`.
    """
    kept = []
    for line in (file.content or "" if file else "").splitlines(keepends=True):
        sources = _parsed("", line)
        ours = (
            archive_place(each.url, each.suite, machine) == place or each.option("Signed-By") == key
            for each in sources
        )
        if not any(ours):
            kept.append(line)
    text = "".join(kept)
    return text if text.endswith("\n") or not text else text + "\n"


def _other_keys(alike: Sequence[AptSource]) -> bool:
    """True if a source has another Signed-By than the first source before it that has one."""
    keys = [" ".join(entry.option("Signed-By").split()) for entry in alike]
    first = next((place for place, key in enumerate(keys) if key), len(keys))
    return any(key != keys[first] for key in keys[first:])


def _plain(value: str) -> str:
    """A value normalized for comparison: apt accepts many spellings of yes and no."""
    word = value.strip().lower()
    if word in _OFF or word in _ON:
        return "yes" if word in _ON else "no"
    return " ".join(value.split())


@lru_cache(maxsize=256)  # hosts have the same files
def _entries(path: str, content: str) -> tuple[AptSource, ...]:
    return tuple(_parsed(path, content))


def _parsed(path: str, content: str) -> Iterator[AptSource]:
    if path.endswith(".sources"):
        for stanza in re.split(r"\n[ \t]*\n", content):
            yield from _stanza(path, _fields(stanza))
        return
    for line in filter(None, map(_LINE.match, content.split("\n"))):
        words = line["words"].split()
        # a disc has blanks in its address and cannot be reached over the network
        if len(words) >= 2 and not words[0].startswith("cdrom:"):
            url, suite, *components = words
            options, binary = _options(line["options"]), line["type"] == "deb"
            yield AptSource(path, url, suite, tuple(components), options, binary)


def _options(text: str | None) -> tuple[tuple[str, str], ...]:
    """`arch=amd64,i386 signed-by=/k.gpg` as deb822 fields."""
    found = []
    for name, _, value in (word.partition("=") for word in (text or "").split()):
        plain = name.rstrip("+-")
        change = {"+": "-Add", "-": "-Remove"}.get(name[-1:], "")
        field = _RENAMED.get(plain, "-".join(part.capitalize() for part in plain.split("-")))
        found.append((field + change, value.replace(",", " ")))
    return tuple(found)


def _fields(stanza: str) -> dict[str, str]:
    """Field name -> value, including line breaks."""
    fields: dict[str, str] = {}
    name = ""
    for line in stanza.splitlines():
        if line.startswith("#"):
            continue
        if line[:1] in (" ", "\t") and name:
            fields[name] += "\n" + line.rstrip()
        elif ":" in line:
            name, _, value = line.partition(":")
            fields[name] = value.strip()
    return fields


def _stanza(path: str, fields: Mapping[str, str]) -> Iterator[AptSource]:
    place = {name.lower(): value.split() for name, value in fields.items()}
    switch = " ".join(place.get("enabled", ["yes"])).lower()
    if switch in _OFF:
        return
    options = tuple(
        (name, value)
        for name, value in fields.items()
        if name.lower() not in _PLACE and not name.lower().startswith("x-")
    )
    components = tuple(place.get("components", ()))
    for kind in place.get("types", []):
        for url in place.get("uris", []):
            for suite in place.get("suites", []):
                yield AptSource(path, url, suite, components, options, kind == "deb")
