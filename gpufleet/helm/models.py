"""Types of helm.yaml: limits of helm and old servers, support range, download."""

from __future__ import annotations

from datetime import date

from gpufleet.core.entries import Entry, Sourced, loader


class HelmLimit(Sourced):
    """A version limit of a feature of helm or the API server."""

    version: str  # "1.20": major and minor


class HelmSkew(Sourced):
    """Kubernetes minors that each helm minor is supported on: helm -> lowest, highest."""

    ranges: dict[str, tuple[str, str]]


class HelmDownload(Sourced):
    """The published helm archives. `sha256`: of the archive, by platform."""

    version: str
    site: str  # URL of the folder with the archives
    archive: str  # file name, with {version} and {platform}
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


helm_catalog = loader(HelmCatalog, "helm/helm")
