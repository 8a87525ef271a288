"""Which counters an exporter of a version collects. Types of counters.yaml, which says more."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import date
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import StringConstraints

from gpufleet.core.data import read
from gpufleet.core.entries import Entry, Sourced
from gpufleet.core.versions import release

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

    def known_to(self, version: str) -> bool:
        """Whether an exporter of `version` knows the name."""
        number = release(version)
        since, until = release(self.since or "0"), release(self.until or "9999")
        return since <= number < until


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

    def serves(self, version: str) -> bool:
        """Whether there is a list for exporters of `version`."""
        return release(self.first) <= release(version)[:3] < release(self.until)

    def is_after(self, version: str) -> bool:
        """Whether exporters of `version` name their metrics differently."""
        return release(version)[:3] >= release(self.until)

    def of(
        self, version: str, generations: Collection[str] = ()
    ) -> Iterator[tuple[Topic, tuple[CounterField, ...]]]:
        """Topics with the fields that an exporter of `version` knows.

        `generations`: of the GPUs; topics that none of them has are left out. Empty: unknown GPUs,
        everything counts.
        """
        for topic in self.topics:
            having = self.profiling if topic.profiling else topic.generations
            if having and generations and not set(generations) & set(having):
                continue
            known = tuple(field for field in topic.fields if field.known_to(version))
            if known:
                yield topic, known


@lru_cache(maxsize=1)
def load_counters() -> CounterCatalog:
    """The counters that this version of gpufleet ships."""
    return CounterCatalog.model_validate(read("exporter/counters"))
