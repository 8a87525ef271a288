"""Types of helm.yaml: limits of helm and of old servers, its support range, its download."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

from gpufleet.core.data import read
from gpufleet.core.entries import Entry, Sourced


class HelmLimit(Sourced):
    """A boundary in what helm or the API server can do."""

    version: str  # "1.20": major and minor


class HelmSkew(Sourced):
    """Kubernetes minors that each helm minor is supported on: helm -> lowest, highest."""

    ranges: dict[str, tuple[str, str]]


class HelmDownload(Sourced):
    """helm itself, as its project publishes it. `sha256`: by platform, of the archive."""

    version: str
    site: str  # URL of the folder that has the archives
    archive: str  # name of one, with {version} and {platform}
    member: str  # path of the program in the archive, with {platform}
    sha256: dict[str, str]


class HelmCatalog(Entry):
    """helm.yaml"""

    as_of: date
    oldest: HelmLimit
    next_major: HelmLimit
    client_side_below: HelmLimit
    watch_list_off_up_to: HelmLimit
    crds_replaced_up_to: HelmLimit
    skew: HelmSkew
    download: HelmDownload


@lru_cache(maxsize=1)
def helm_catalog() -> HelmCatalog:
    """The catalog of helm that is shipped with this version of gpufleet."""
    return HelmCatalog.model_validate(read("helm/helm"))
