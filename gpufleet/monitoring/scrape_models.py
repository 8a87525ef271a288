"""Types of scrape.yaml, which explains its fields."""

from __future__ import annotations

from functools import lru_cache

from gpufleet.core.data import read
from gpufleet.core.entries import Sourced


class Scrape(Sourced):
    """scrape.yaml"""

    slices_from: str


@lru_cache(maxsize=1)
def load_scrape() -> Scrape:
    """What is shipped with this version of gpufleet."""
    return Scrape.model_validate(read("monitoring/scrape"))
