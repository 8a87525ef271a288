"""Findings about the exporter on hosts."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

IMAGE_NOT_THERE = blocker(
    "GF579",
    "Exporter image not available",
    "docker does not have the image {image} and cannot pull it.",
    "Docker's output follows. Load the image manually (docker load), or set exporter_image to one "
    "that this host can pull.",
)
LEFT_TO_CLUSTER = info(
    "GF580",
    "Host exporter skipped",
    'kubelet detected: host exporter skipped (exporter_enabled = "auto"), metrics are left to the '
    "cluster.{left}",
    "No action required; exporter_enabled = True runs an exporter on the host regardless.",
)
COLLECTED_ALREADY = blocker(
    "GF581",
    "Another process already collects GPU metrics",
    "{who}. Two collectors on one GPU take the profiling counters from each other, so no second "
    "one is installed.",
    "Stop the other one: the exporter starts a host engine of DCGM itself. Or leave "
    'exporter_enabled at False or "auto" for this host.',
)
EXPORTER_PORT_TAKEN = blocker(
    "GF582",
    "Exporter port in use",
    "{who} already listens on {address}, the exporter's address.",
    "Set exporter_port to another port, or stop the other process.",
)
CANNOT_RUN = blocker(
    "GF583",
    "Exporter cannot run here",
    "The exporter cannot run {how}: {why}.",
    "For a container, install docker and let gpufleet configure its nvidia runtime "
    '(toolkit_enabled, toolkit_runtimes). Otherwise set exporter_mode = "systemd" where packages '
    "exist.",
)
UNKNOWN_VERSION = blocker(
    "GF585",
    "DCGM version unknown for this exporter",
    "dcgm-exporter {version} is not in the catalog of {date}, which has {known}. An exporter "
    "requires the DCGM version it was built with.",
    "Set exporter_dcgm_version to the first half of the release name (4.6.0-4.8.3: 4.6.0), or use "
    "a version from the catalog.",
)
VERSION_CAUTION = warning(
    "GF586",
    "Exporter version with known problems",
    "dcgm-exporter {version} {problem}.",
    'Set exporter_version = "{newest}", or remove it.',
    description="The catalog lists a problem of this exporter version, which the message quotes.",
)
LOOPBACK = info(
    "GF587",
    "Metrics only on the host",
    "The exporter listens on {address} only: a Prometheus on another machine cannot scrape it.",
    "Set exporter_listen to an address of the host's network. /metrics is unauthenticated; "
    "restrict access to the port.",
)
EXPORTER_DOWN = blocker(
    "GF588",
    "Exporter does not report every GPU",
    "{unit} was started, but http://{address}/metrics did not report {gpus:GPU|GPUs} within "
    "{seconds} seconds.",
    "Its output follows; journalctl -u {unit} has more.",
)
OTHER_DCGM = blocker(
    "GF589",
    "Another DCGM generation is installed",
    "The DCGM 4 packages conflict with {packages}, which gpufleet did not install.",
    'Remove it if nothing needs it, or set exporter_mode = "docker".',
)
