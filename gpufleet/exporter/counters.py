"""The counters of each exporter version: types of counters.yaml, and lists of counters. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from typing import Annotated, Literal

from pydantic import StringConstraints

from gpufleet.core.entries import Entry, Sourced, entry_loader
from gpufleet.core.versions import version_tuple

FieldName = Annotated[str, StringConstraints(pattern=r"^DCGM_[A-Z0-9_]+$")]
ExporterVersion = Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$")]


class CounterField(Entry):
    """One line of the list. `help` is one CSV field, without comma and quote."""

    field: FieldName
    id: int | None = None  # DCGM's id; the exporter's own counters lack one
    type: Literal["gauge", "counter", "label"]
    help: Annotated[str, StringConstraints(pattern=r'^[^,"\n]+$')]
    since: ExporterVersion | None = None
    until: ExporterVersion | None = None
    gone: tuple[ExporterVersion, ExporterVersion] | None = None
    note: str = ""


class Topic(Entry):
    """Related fields. `generations`: GPU generations that have them."""

    topic: str
    generations: tuple[str, ...] = ()
    profiling: bool = False
    fields: tuple[CounterField, ...]


class Builtin(Sourced):
    """The counters of an exporter without a list."""

    fields: tuple[FieldName, ...]


class Choosing(Sourced):
    """How an exporter gets a list. Fields: see counters.yaml."""

    folder: str
    own_files: Mapping[str, str]
    own_map: str
    own_volume: str
    file_options: tuple[str, ...]
    map_options: tuple[str, ...]
    variables: tuple[str, ...]
    tag: str


class CounterCatalog(Sourced):
    """counters.yaml"""

    as_of: date
    first: ExporterVersion
    until: ExporterVersion
    builtin: Builtin
    choosing: Choosing
    profiling: tuple[str, ...]
    topics: tuple[Topic, ...]


load_counters = entry_loader(CounterCatalog, "exporter/counters")


def has_list(catalog: CounterCatalog, version: str) -> bool:
    """True if the catalog has a list for exporters of `version`."""
    return version_tuple(catalog.first) <= version_tuple(version)[:3] < version_tuple(catalog.until)


def renames_metrics(catalog: CounterCatalog, version: str) -> bool:
    """True if exporters of `version` use other metric names."""
    return version_tuple(version)[:3] >= version_tuple(catalog.until)


def counters_csv(
    catalog: CounterCatalog, version: str, generations: Collection[str] = ()
) -> str | None:
    """The list for an exporter of `version` as its CSV: `field, type, help` lines and # titles.

    `generations`: of the host's GPUs, as in gpus.yaml; empty if unknown. Returns None if the
    catalog has no list for that version: the exporter then uses its own.
    """
    if not has_list(catalog, version):
        return None
    number = version_tuple(version)
    lines = ["# Written by gpufleet: field, type, help."]
    for topic in catalog.topics:
        having = catalog.profiling if topic.profiling else topic.generations
        if having and generations and not set(generations) & set(having):
            continue
        fields = [
            f"{entry.field}, {entry.type}, {entry.help}"
            for entry in topic.fields
            if version_tuple(entry.since or "0") <= number < version_tuple(entry.until or "9999")
        ]
        if fields:
            lines += ["", f"# {topic.topic}", *fields]
    return "\n".join(lines) + "\n"


def own_fields(catalog: CounterCatalog, version: str) -> frozenset[str]:
    """The fields that an exporter of `version` collects without a list."""
    return frozenset() if renames_metrics(catalog, version) else frozenset(catalog.builtin.fields)


def unknown_fields(
    catalog: CounterCatalog, version: str, fields: Collection[str]
) -> dict[str, str]:
    """The `fields` that an exporter of `version` does not know, each with the versions that know
    it. Fields that the catalog lacks are not judged."""
    number, found = version_tuple(version), {}
    for entry in [entry for topic in catalog.topics for entry in topic.fields]:
        since, (gone, again) = entry.since or "0", entry.gone or ("9999", "9999")
        if entry.field not in fields:
            continue
        if number < version_tuple(since):
            found[entry.field] = f"{since} and newer"
        elif version_tuple(gone) <= number < version_tuple(again):
            found[entry.field] = f"before {gone}, and {again} and newer"
    return found


def fields_of(csv: str) -> frozenset[str]:
    """The fields of a list."""
    lines = [line for line in csv.splitlines() if line.strip() and not line.startswith("#")]
    return frozenset(line.split(",", 1)[0].strip() for line in lines)
