"""The catalog of hosts, from the packages' YAML files."""

from __future__ import annotations

from functools import lru_cache

from gpufleet.containerd.models import ContainerdCatalog
from gpufleet.core.data import read_data
from gpufleet.core.distributions import load_distributions
from gpufleet.core.entries import validate_data
from gpufleet.core.own_catalog import OWN_FILES
from gpufleet.exporter.models import ExporterCatalog
from gpufleet.kubernetes.models import KubernetesCatalog


class Catalog(KubernetesCatalog, ExporterCatalog, ContainerdCatalog):
    """The catalog for all roles of a node."""


# part of the catalog -> its data file, ROOM/NAME, if catalog.d/ can change it
CHANGEABLE = {name.partition("/")[2]: name for name in OWN_FILES.values()}


@lru_cache(maxsize=1)
def load_catalog() -> Catalog:
    """The catalog of this version of gpufleet, with the entries of catalog.d/.

    Raises Stopped for a wrong entry of catalog.d/, and pydantic.ValidationError if a file of
    gpufleet does not match its type.
    """
    data = {
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
    return validate_data(Catalog, CHANGEABLE, data, OWN_FILES["repositories.yaml"])
