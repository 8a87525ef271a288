"""Reads the YAML files of the catalog into a `Catalog`."""

from __future__ import annotations

from functools import lru_cache

from gpufleet.catalog.files import read
from gpufleet.catalog.models import Catalog

__all__ = ["load_catalog", "read"]


@lru_cache(maxsize=1)
def load_catalog() -> Catalog:
    """The catalog that is shipped with this version of gpufleet.

    Raises pydantic.ValidationError where a file does not fit its type.
    """
    return Catalog.model_validate(
        {
            **read("distributions"),
            **read("repositories"),
            "branches": read("branches"),
            "gpus": read("gpus"),
            "packages": read("packages"),
            "toolkit": read("toolkit"),
            "runtimes": read("runtimes"),
            "exporter": read("exporter"),
        }
    )
