"""All facts about hosts and what they can have, out of the rooms' YAML files."""

from __future__ import annotations

from functools import lru_cache

from gpufleet.core.data import read
from gpufleet.core.distributions import load_distributions
from gpufleet.exporter.models import ExporterCatalog
from gpufleet.toolkit.models import ToolkitCatalog


class Catalog(ToolkitCatalog, ExporterCatalog):
    """What all roles of a node know."""


@lru_cache(maxsize=1)
def load_catalog() -> Catalog:
    """The catalog that is shipped with this version of gpufleet.

    Raises pydantic.ValidationError where a file does not fit its type.
    """
    return Catalog.model_validate(
        {
            "distributions": load_distributions(),
            **read("packages/repositories"),
            "branches": read("driver/branches"),
            "gpus": read("driver/gpus"),
            "packages": read("driver/packages"),
            "toolkit": read("toolkit/toolkit"),
            "runtimes": read("toolkit/runtimes"),
            "exporter": read("exporter/exporter"),
        }
    )
