"""The catalog of hosts, from the packages' YAML files."""

from __future__ import annotations

from functools import lru_cache

from gpufleet.containerd.models import ContainerdCatalog
from gpufleet.core.data import read_data
from gpufleet.core.distributions import load_distributions
from gpufleet.core.entries import validate_data
from gpufleet.exporter.models import ExporterCatalog
from gpufleet.kubernetes.models import KubernetesCatalog


class Catalog(KubernetesCatalog, ExporterCatalog, ContainerdCatalog):
    """The catalog for all roles of a node."""


DATA_FILES = {  # of the catalog, each from one data file
    "branches": "driver/branches",
    "gpus": "driver/gpus",
    "packages": "driver/packages",
    "containerd": "containerd/containerd",
    "toolkit": "toolkit/toolkit",
    "runtimes": "toolkit/runtimes",
    "exporter": "exporter/exporter",
    "kubernetes": "kubernetes/kubernetes",
}


@lru_cache(maxsize=1)
def load_catalog() -> Catalog:
    """The catalog of this version of gpufleet, with the entries of catalog.d/.

    Raises Stopped for a wrong entry of catalog.d/, and pydantic.ValidationError if a file of
    gpufleet does not match its type.
    """
    repositories = "packages/repositories"
    data = {
        "distributions": load_distributions(),
        **read_data(repositories),
        **{key: read_data(name) for key, name in DATA_FILES.items()},
    }
    return validate_data(Catalog, DATA_FILES, data, repositories)
