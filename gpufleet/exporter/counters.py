"""Which counters an exporter of a version collects. Types of counters.yaml, which says more."""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import StringConstraints

from gpufleet.core.data import read
from gpufleet.core.entries import Entry, Sourced

FieldName = Annotated[str, StringConstraints(pattern=r"^DCGM_[A-Z0-9_]+$")]
ExporterVersion = Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$")]


class CounterField(Entry):
    """One line of the list. `help` goes into one field of CSV, so it has no comma and no quote."""

    field: FieldName
    id: int | None = None  # DCGM's number; the exporter's own counters have none
    type: Literal["gauge", "counter", "label"]
    help: Annotated[str, StringConstraints(pattern=r'^[^,"\n]+$')]
    since: ExporterVersion | None = None
    until: ExporterVersion | None = None
    note: str = ""


class Topic(Entry):
    """Fields that belong together; with `generations`, only such GPUs have them."""

    topic: str
    generations: tuple[str, ...] = ()
    profiling: bool = False
    fields: tuple[CounterField, ...]


class Builtin(Sourced):
    """What an exporter collects that was given no list."""

    fields: tuple[FieldName, ...]


class CounterCatalog(Sourced):
    """counters.yaml"""

    as_of: date
    first: ExporterVersion
    until: ExporterVersion
    builtin: Builtin
    profiling: tuple[str, ...]
    topics: tuple[Topic, ...]


@lru_cache(maxsize=1)
def load_counters() -> CounterCatalog:
    """The counters that this version of gpufleet ships."""
    return CounterCatalog.model_validate(read("exporter/counters"))
