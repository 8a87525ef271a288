"""The catalog of hosts, from the packages' YAML files."""

from __future__ import annotations

from functools import lru_cache

from gpufleet.containerd.models import ContainerdCatalog
from gpufleet.core.data import read
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
            **read("packages/repositories"),
            "branches": read("driver/branches"),
            "gpus": read("driver/gpus"),
            "packages": read("driver/packages"),
            "containerd": read("containerd/containerd"),
            "toolkit": read("toolkit/toolkit"),
            "runtimes": read("toolkit/runtimes"),
            "exporter": read("exporter/exporter"),
            "kubernetes": read("kubernetes/kubernetes"),
        }
    )
