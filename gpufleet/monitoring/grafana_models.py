"""Types of grafana.yaml, which explains its fields."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

from gpufleet.core.data import read
from gpufleet.core.entries import Entry, Sourced


class Sidecar(Sourced):
    """What Grafana's sidecar selects by."""

    label: str
    value: str
    folder: str


class Grafana(Entry):
    """grafana.yaml"""

    as_of: date
    sidecar: Sidecar
    largest: int
    largest_source: str


@lru_cache(maxsize=1)
def load_grafana() -> Grafana:
    """What is shipped with this version of gpufleet."""
    return Grafana.model_validate(read("monitoring/grafana"))
