"""Types of grafana.yaml and scrape.yaml, which explain their fields."""

from __future__ import annotations

from datetime import date

from gpufleet.core.entries import Entry, Sourced, entry_loader


class Sidecar(Sourced):
    """The label and annotation by which Grafana's sidecar selects."""

    label: str
    value: str
    folder: str


class Grafana(Entry):
    """grafana.yaml"""

    as_of: date
    images: tuple[str, ...]
    sidecar: Sidecar
    largest: int
    largest_source: str


load_grafana = entry_loader(Grafana, "monitoring/grafana")


class Scrape(Sourced):
    """scrape.yaml"""

    slices_from: str


load_scrape = entry_loader(Scrape, "monitoring/scrape")
