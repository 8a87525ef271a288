"""The types of helm.yaml, and helm's flags and variables for a server. Pure."""

from __future__ import annotations

from datetime import date

from gpufleet.core.entries import Entry, Sourced, entry_loader
from gpufleet.core.versions import version_tuple
from gpufleet.helm.release import HelmStrategy, HelmVersion
from gpufleet.kube.facts import HelmRelease, ServerVersion


class HelmLimit(Sourced):
    """A version limit of a feature of helm or the API server."""

    version: str  # "1.20": major and minor


class HelmDownload(Sourced):
    """The published helm archives. `sha256`: platform -> checksum of the archive."""

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
    download: HelmDownload


helm_catalog = entry_loader(HelmCatalog, "helm/helm")


SERVER_SIDE = "ssa"  # apply_method of a release that helm 4 applied server-side


def helm_strategy(
    helm: HelmVersion,
    server: ServerVersion,
    catalog: HelmCatalog,
    before: HelmRelease | None = None,
    *,
    force_conflicts: bool = False,
) -> HelmStrategy:
    """Flags and variables for one release. `before`: the installed release, if any."""
    flags: list[str] = []
    environment: dict[str, str] = {}
    reasons: list[str] = []
    at = (server.major, server.minor)
    server_side = (helm.major, helm.minor) >= version_tuple(catalog.next_major.version)
    if server_side and at < version_tuple(catalog.client_side_below.version):
        flags.append("--server-side=false")
        server_side = False
        reasons.append(f"server-side apply does not work on Kubernetes {server}")
    if at <= version_tuple(catalog.watch_list_off_up_to.version):
        environment["KUBE_FEATURE_WatchListClient"] = "false"
        reasons.append(f"helm's default watch hangs on Kubernetes {server}")
    if force_conflicts and server_side and (before is None or before.apply_method == SERVER_SIDE):
        flags.append("--force-conflicts")
        reasons.append("fields changed by another manager are overwritten")
    return HelmStrategy(tuple(flags), environment, tuple(reasons))
