"""Types of scrape.yaml, which explains its fields."""

from __future__ import annotations

from gpufleet.core.entries import Sourced, loader


class Scrape(Sourced):
    """scrape.yaml"""

    slices_from: str


load_scrape = loader(Scrape, "monitoring/scrape")
