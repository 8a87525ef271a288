"""The catalog of hosts, from the packages' YAML files."""

from __future__ import annotations

from functools import lru_cache

from gpufleet.containerd.models import ContainerdCatalog
from gpufleet.core.data import read_data
from gpufleet.core.distributions import load_distributions
from gpufleet.exporter.models import ExporterCatalog
from gpufleet.kubernetes.models import KubernetesCatalog


class Catalog(KubernetesCatalog, ExporterCatalog, ContainerdCatalog):
    """The catalog for all roles of a node."""


@lru_cache(maxsize=1)
def load_catalog() -> Catalog:
    """The catalog shipped with this version of gpufleet.

    Raises pydantic.ValidationError if a file does not match its type.
    """
    return Catalog.model_validate(
        {
            "distributions": load_distributions(),
            **read_data("packages/repositories"),
            "branches": read_data("driver/branches"),
            "gpus": read_data("driver/gpus"),
            "packages": read_data("driver/packages"),
            "containerd": read_data("containerd/containerd"),
            "toolkit": read_data("toolkit/toolkit"),
            "runtimes": read_data("toolkit/runtimes"),
            "exporter": read_data("exporter/exporter"),
            "kubernetes": read_data("kubernetes/kubernetes"),
        }
    )
