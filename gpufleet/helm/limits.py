"""What helm.yaml says: limits of helm and of old servers, its support range, its download."""

from __future__ import annotations

from functools import lru_cache

from gpufleet.core.data import read
from gpufleet.helm.models import HelmCatalog


@lru_cache(maxsize=1)
def helm_catalog() -> HelmCatalog:
    """The catalog of helm that is shipped with this version of gpufleet."""
    return HelmCatalog.model_validate(read("helm/helm"))
