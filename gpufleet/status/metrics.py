"""A fleet as metrics for Prometheus. Pure."""

from __future__ import annotations

from gpufleet.core import metrics
from gpufleet.core.secrets import hide_secrets
from gpufleet.status.models import FLAGS, FleetStatus, Row

STATUS_METRICS_PREFIX = "gpufleet_status"


def status_metrics_text(fleet: FleetStatus, now: int) -> str:
    """The metrics of a fleet. `now`: seconds since 1970."""
    flags = [
        ({"host": row.name, "flag": flag}, float(flag in row.flags))
        for row in fleet.rows
        for flag in FLAGS
    ]
    cluster_flags = [
        ({"cluster": row.name, "flag": flag}, float(flag in row.flags))
        for row in fleet.clusters
        for flag in FLAGS
    ]
    releases = [
        ({"cluster": row.name, "release": name, "version": version}, 1.0)
        for row in fleet.clusters
        for name, version in row.releases
    ]
    read = [row for row in fleet.rows if row.reached]
    gpus = [({"host": row.name, "model": row.model}, float(row.gpus)) for row in read]
    text = metrics.gauges_text(
        STATUS_METRICS_PREFIX,
        [
            ("flag", "Whether the host has the flag.", flags),
            ("gpus", "GPUs on the PCI bus of the host.", gpus),
            ("host_info", "Versions on the host.", [(_versions(row), 1.0) for row in read]),
            ("cluster_flag", "Whether the cluster has the flag.", cluster_flags),
            ("cluster_release_info", "Helm releases of gpufleet in the cluster.", releases),
            ("timestamp_seconds", "When gpufleet status read the hosts.",
             [({"inventory": fleet.inventory}, float(now))]),
        ],
    )  # fmt: skip
    return hide_secrets(text)


def _versions(row: Row) -> dict[str, str]:
    loaded = "true" if row.loaded else "false"
    return {"host": row.name, "driver": row.driver, "loaded": loaded, "toolkit": row.toolkit,
            "kernel": row.kernel, "os": row.os}  # fmt: skip
