"""The counters of each exporter version. Types of counters.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal

from pydantic import StringConstraints

from gpufleet.core.entries import Entry, Sourced, loader

FieldName = Annotated[str, StringConstraints(pattern=r"^DCGM_[A-Z0-9_]+$")]
ExporterVersion = Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$")]


class CounterField(Entry):
    """One line of the list. `help` is one CSV field, without comma and quote."""

    field: FieldName
    id: int | None = None  # of DCGM; the exporter's own counters have none
    type: Literal["gauge", "counter", "label"]
    help: Annotated[str, StringConstraints(pattern=r'^[^,"\n]+$')]
    since: ExporterVersion | None = None
    until: ExporterVersion | None = None
    gone: tuple[ExporterVersion, ExporterVersion] | None = None
    note: str = ""


class Topic(Entry):
    """Related fields; `generations`: of the GPUs that have them."""

    topic: str
    generations: tuple[str, ...] = ()
    profiling: bool = False
    fields: tuple[CounterField, ...]


class Builtin(Sourced):
    """The counters of an exporter without a list."""

    fields: tuple[FieldName, ...]


class Choosing(Sourced):
    """How an exporter is given a list. See counters.yaml for the fields."""

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


load_counters = loader(CounterCatalog, "exporter/counters")
