"""Types: sources, their content, and the gaps between them and the catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal

from gpufleet.core.entries import Entry, Sourced, entry_loader
from gpufleet.core.findings import Finding

Subject = Literal["drivers", "toolkit", "keys", "charts", "kubernetes", "runtimes"]
CATALOG_SUBJECTS: tuple[Subject, ...] = (
    "drivers",
    "toolkit",
    "keys",
    "charts",
    "kubernetes",
    "runtimes",
)
SourceKind = Literal["deb", "rpm", "key", "index", "chart", "schedule", "cycles", "releases"]


class SourceAddress(Sourced):
    """An address that the catalog's other files do not have."""

    url: str


class SourceAddresses(Entry):
    """sources.yaml"""

    releases: dict[str, SourceAddress]
    charts: dict[str, SourceAddress]


load_addresses = entry_loader(SourceAddresses, "catalog/sources")


@dataclass(frozen=True, slots=True)
class LiveSource:
    """A source to read. `about`: the thing it describes: a distribution, a chart repository, a key.

    `title`: the source's name for users. `architecture`: of a package repository, as in `uname -m`.
    """

    subject: Subject
    kind: SourceKind
    about: str
    title: str
    url: str
    architecture: str = ""


PackageVersions = Mapping[str, frozenset[str]]  # name -> versions without epoch and revision
KeyEnds = Mapping[str, datetime | None]  # fingerprint -> end of its validity
Cycles = Mapping[str, date | None]  # minor -> end of life, None if it is not known


@dataclass(frozen=True, slots=True)
class ChartRelease:
    """A version of a chart. `kube_version`: the Kubernetes versions that it asks for, or ""."""

    version: str
    kube_version: str = ""


ChartReleases = Mapping[str, Sequence[ChartRelease]]  # chart -> its versions
DriverKinds = Mapping[int, str]  # branch -> kind, as in branches.yaml


@dataclass(frozen=True, slots=True)
class Reading:
    """A source that was read. `content`: one of the types above, by the source's kind."""

    source: LiveSource
    content: Any


@dataclass(frozen=True, slots=True)
class Unread:
    """A source that was not read. `url`: the address that was asked, on the mirror or its own."""

    source: LiveSource
    url: str
    reason: str


@dataclass(frozen=True, slots=True)
class DataEdit:
    """A change of one data file, ROOM/NAME.

    `path`: keys; a pair (key, value) selects the entry of a list. `value`: a scalar replaces the
    one at `path`; an entry (a mapping, or a scalar of a list) is added to the list or mapping at
    `path`. `append`: the value is added to the end of the text. `keep`: the scalar at `path` is
    also added to the list `value` of the same entry.
    """

    file: str
    path: tuple[str | tuple[str, str], ...]
    value: str | Mapping[str, object]
    action: Literal["set", "add", "append", "keep"] = "set"


@dataclass(frozen=True, slots=True)
class Gap:
    """A fact that the catalog lacks or has differently. `edits`: change its data files; none if a
    person has to decide."""

    subject: Subject
    finding: Finding
    url: str
    edits: tuple[DataEdit, ...] = ()
