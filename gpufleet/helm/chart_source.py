"""The source of a chart. Pure."""

from __future__ import annotations

from pathlib import Path

from gpufleet.helm.chart_choice import ChartChoice
from gpufleet.helm.release import ChartSource
from gpufleet.helm.settings import ClusterAccess


def chart_source(choice: ChartChoice, access: ClusterAccess) -> ChartSource:
    """By the settings, in this order: the chart's own repository, the folder of archives, the
    repository of all charts, upstream's repository."""
    wanted = access.chart_repository
    own = wanted.get(choice.chart) if isinstance(wanted, dict) else None
    if own is None and access.chart_dir:
        name = f"{choice.chart}-{choice.version}.tgz"
        return ChartSource("archive", str(Path(access.chart_dir).expanduser() / name))
    location = own or (wanted if isinstance(wanted, str) else choice.repository)
    if location.startswith("oci://"):
        reference = f"{location}/{choice.chart}"
        return ChartSource("oci", reference, access.chart_logins or "", access.chart_plain_http)
    return ChartSource("repository", location, access.chart_logins or "")
