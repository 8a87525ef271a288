"""Reads the YAML files of the catalog into a `Catalog`."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any

import yaml

from gpufleet.catalog.models import Catalog

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(name: str) -> dict[str, Any]:
    """One file as a mapping; keys that begin with a dot only hold anchors and are left out."""
    text = resources.files("gpufleet.catalog").joinpath(f"{name}.yaml").read_bytes()
    data = yaml.load(text, Loader=_LOADER)
    return {key: value for key, value in data.items() if not key.startswith(".")}


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
