"""The files that containerd reads, and the CRI plugin's table in each. Pure.

The name of the table follows the `version` of the file. containerd 2.x converts each file from
its version on, and merges a table of the old name with one of the new name, which wins; before 2.3
it does not convert version 1. containerd 1.x converts nothing: the highest version of all files
decides (seen in `containerd config dump` of 1.6.20, 1.7.32, 2.0.14, 2.2.9, 2.3.7).
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

from gpufleet.formats.edits import Data, lookup_path
from gpufleet.toolkit.config.layers import Layers
from gpufleet.toolkit.config.tables import parse_tables

# The CRI plugin's name per version of the configuration file (containerd docs, PLUGINS.md).
CRI = {
    1: "cri",
    2: "io.containerd.grpc.v1.cri",
    3: "io.containerd.cri.v1.runtime",
    4: "io.containerd.cri.v1.runtime",
}
NEWEST = max(CRI)
_UNCONVERTED = 2  # the newest version of containerd 1.x
# Names of it, and from version 3 on of its parts, in `disabled_plugins`.
CRI_PLUGINS = frozenset({*CRI.values(), "io.containerd.cri.v1.images"})


def read_containerd_layers(
    texts: Mapping[str, str], main: str, deep_merge: bool, newest_version: int = NEWEST
) -> Layers:
    """The CRI plugin's table in the main file and in those that it imports, in their order.

    Before 2.0 an import that names the plugin replaces its whole table. A program reads the names
    of the versions up to its `newest_version`.
    """
    read = {path: parse_tables(texts[path]) for path in read_files(texts, main)}
    common = max((version_of(data) for data in read.values()), default=1)
    tables = []
    for path, data in read.items():
        version = version_of(data) if newest_version > _UNCONVERTED else common
        table = cri_table(data, version, newest_version)
        if table:
            tables.append((path, table))
    return Layers(tuple(tables if deep_merge else tables[-1:]))


def read_files(texts: Mapping[str, str], main: str) -> list[str]:
    """The paths that containerd reads, in its order: the main file, then imports."""
    found: list[str] = []
    pending = [main]
    while pending:
        path = pending.pop(0)
        if path in texts and path not in found:
            found.append(path)
            pending += _imports(texts[path], path, texts)
    return found


def _imports(text: str, path: str, known: Iterable[str]) -> Iterator[str]:
    entries = parse_tables(text).get("imports", [])
    for entry in entries if isinstance(entries, list) else []:
        pattern = posixpath.normpath(posixpath.join(posixpath.dirname(path), str(entry)))
        if "*" in pattern:  # like Go's filepath.Glob: a star does not match a slash
            near = [name for name in known if name.count("/") == pattern.count("/")]
            yield from sorted(name for name in near if fnmatch.fnmatchcase(name, pattern))
        else:
            yield pattern


def version_of(data: Data) -> int:
    """The configuration version that containerd assumes for a file; 1 if it names none."""
    version = data.get("version", 1)
    return version if isinstance(version, int) and version else 1


def cri_table(data: Data, version: int, newest_version: int = NEWEST) -> Data:
    """The CRI plugin's table of one file, as the program converts it."""
    tables = (lookup_path(data, ("plugins", name)) for name in cri_names(version, newest_version))
    return reduce(_converted, (table for table in tables if isinstance(table, dict)), {})


def cri_names(version: int, newest_version: int = NEWEST) -> tuple[str, ...]:
    """The plugin's names in a file of that version, the preferred one last."""
    oldest = min(max(version, 1), newest_version)
    if newest_version <= _UNCONVERTED:
        return (CRI[oldest],)
    if oldest == newest_version or oldest < _UNCONVERTED < newest_version < NEWEST:
        return (CRI[newest_version],)
    versions = range(min(oldest, _UNCONVERTED), newest_version + 1)
    return tuple(dict.fromkeys(CRI[each] for each in versions))


def written_name(data: Data, version: int, newest_version: int = NEWEST) -> str:
    """The name that our settings take: that of the file's version, or a newer one that it has.

    containerd ignores the runtimes of the old name if a table of the new name has some, and takes
    one of the two at random that a file of version 1 has (run with 2.4.2).
    """
    names = cri_names(version, newest_version)
    own = CRI[min(version, newest_version)]
    if own not in names:
        return names[-1]
    able = names[names.index(own) :]
    runtimes = [name for name in able if lookup_path(data, ("plugins", name, "containerd"))]
    there = [name for name in able if lookup_path(data, ("plugins", name))]
    return (*runtimes[-1:], *there[:1], own)[0]


def plugin_of(text: str | None, newest_version: int = NEWEST) -> str:
    """The CRI plugin's name in a file."""
    data = parse_tables(text)
    return written_name(data, version_of(data), newest_version)


def _converted(old: Data, new: Data) -> Data:
    """The table of the newer name over that of the older one: one level deep, and `containerd`."""
    both = {**old, **new}
    inner = [table.get("containerd") for table in (old, new)]
    if all(isinstance(each, dict) for each in inner):
        both["containerd"] = {**(inner[0] or {}), **(inner[1] or {})}
    return both


def cri_disabled_in(texts: Mapping[str, str], main: str) -> str:
    """Path of a file that disables the CRI plugin, or "". containerd joins all lists.

    No kubelet uses a containerd without it.
    """
    for path in read_files(texts, main):
        disabled = parse_tables(texts[path]).get("disabled_plugins", [])
        names = disabled if isinstance(disabled, list) else []
        if any(isinstance(name, str) and name in CRI_PLUGINS for name in names):
            return path
    return ""
