"""Findings of the exporter on hosts."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

IMAGE_NOT_THERE = Kind(
    "GF579",
    Severity.BLOCKER,
    "The exporter's image cannot be had",
    "docker does not have the image {image} and cannot pull it.",
    "See what docker says below; load the image by hand (docker load), or set exporter_image to "
    "one that this host can pull.",
)
LEFT_TO_CLUSTER = Kind(
    "GF580",
    Severity.INFO,
    "No exporter beside a kubelet",
    'a kubelet runs here and exporter_enabled is "auto": the metrics are left to the cluster.'
    "{left}",
    "Nothing to do; exporter_enabled = True runs an exporter on the host all the same.",
)
COLLECTED_ALREADY = Kind(
    "GF581",
    Severity.BLOCKER,
    "Another process collects already",
    "{who}. Two that collect from one GPU take the profiling counters from each other, so no "
    "second one is installed.",
    'Stop the one there is, or leave exporter_enabled at False or "auto" for this host.',
)
PORT_TAKEN = Kind(
    "GF582",
    Severity.BLOCKER,
    "The exporter's port is taken",
    "{who} listens on {address}, which is where the exporter shall listen.",
    "Set exporter_port to another port, or stop what listens there.",
)
NO_PACKAGES = Kind(
    "GF583",
    Severity.BLOCKER,
    "The exporter cannot be installed from packages",
    "exporter_mode is {mode}, and there is no package of the exporter for this host: {why}.",
    'Set exporter_mode = "docker" and see that docker runs here{or_else}.',
)
NO_DOCKER = Kind(
    "GF584",
    Severity.BLOCKER,
    "The exporter cannot run as a container",
    "the exporter is to run in docker, and {why}.{packages}",
    "Install docker and let gpufleet give it the runtime nvidia (toolkit_enabled, "
    'toolkit_runtimes), or set exporter_mode = "systemd" where there are packages.',
)
UNKNOWN_VERSION = Kind(
    "GF585",
    Severity.BLOCKER,
    "Which DCGM goes with the exporter is not known",
    "dcgm-exporter {version} is not in the catalog of {date}, which knows {known}; an exporter "
    "needs the DCGM that it was made with.",
    "Set exporter_dcgm_version to the first half of the release's name (4.6.0-4.8.3: 4.6.0), or "
    "take a version that the catalog knows.",
)
VERSION_CAUTION = Kind(
    "GF586",
    Severity.WARNING,
    "A version of the exporter to be careful with",
    "dcgm-exporter {version} {problem}.",
    "Set exporter_version = {newest}, or leave it out.",
)
LOOPBACK = Kind(
    "GF587",
    Severity.INFO,
    "The metrics stay on the host",
    "the exporter listens on {address} only: a Prometheus on another machine does not reach it.",
    "Set exporter_listen to an address of the host's own network, and keep others away from the "
    "port: the metrics have no password.",
)
EXPORTER_DOWN = Kind(
    "GF588",
    Severity.BLOCKER,
    "The exporter does not give metrics of every GPU",
    "{unit} was started, and http://{address}/metrics does not come to have metrics of all {gpus} "
    "GPUs (within {seconds} seconds).",
    "What it says is below; journalctl -u {unit} has more.",
)
OTHER_DCGM = Kind(
    "GF589",
    Severity.BLOCKER,
    "Another generation of DCGM is installed",
    "the packages of DCGM 4 conflict with {packages}, which gpufleet did not install.",
    'Remove it if nothing needs it, or set exporter_mode = "docker".',
)
