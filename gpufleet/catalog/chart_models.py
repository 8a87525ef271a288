"""Types of charts.yaml."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from pydantic import Field

from gpufleet.catalog.base import Entry, Sourced

Minor = Annotated[str, Field(pattern=r"^1\.\d+$")]
ChartVersion = Annotated[str, Field(pattern=r"^v?\d+\.\d+\.\d+$")]


class Pick(Entry):
    """The careful choice from a minor on."""

    from_: Minor = Field(alias="from")
    version: ChartVersion
    why: str


class Break(Sourced):
    """Versions that do not install below a minor; `values` make them fit, `last` fits as it is."""

    since: ChartVersion
    until: ChartVersion | None = None  # not included
    below: Minor
    error: str
    last: ChartVersion
    values: dict[str, Any] = Field(default_factory=dict)


class Documented(Entry):
    """The minors that upstream names for versions from `since` up to the next entry."""

    since: ChartVersion
    first: Minor
    last: Minor | None = None


class Chart(Sourced):
    """One chart. See charts.yaml for the fields."""

    repository: str
    picks: tuple[Pick, ...]
    breaks: tuple[Break, ...] = ()
    documented: tuple[Documented, ...] = ()
    installed: dict[ChartVersion, dict[Minor, Annotated[str, Field(pattern=r"^\d+/\d+$")]]]


class ChartCatalog(Sourced):
    """charts.yaml. `kubernetes`: the minors that it knows, with their end of life."""

    as_of: date
    kubernetes: dict[Minor, date]
    charts: dict[str, Chart]
