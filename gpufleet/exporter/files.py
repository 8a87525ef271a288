"""The exporter's files on a host, and the collectors that gpufleet started there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Literal

from gpufleet.core.render import render_template
from gpufleet.exporter.models import ExporterCatalog, ExporterEntry
from gpufleet.exporter.resolve import ExporterChoice
from gpufleet.exporter.settings import ExporterSettings
from gpufleet.facts.model import Daemon, NodeFacts
from gpufleet.host.file_write import FileWrite

Mode = Literal["systemd", "docker"]
EXPORTER_CONTAINER = "gpufleet-dcgm-exporter"
UNIT = f"{EXPORTER_CONTAINER}.service"
SYSTEMD = "/etc/systemd/system/"
UNIT_FILE = f"{SYSTEMD}{UNIT}"
CIDFILE = f"/run/{EXPORTER_CONTAINER}.cid"
COUNTERS_NAME = "gpufleet-counters.csv"


def exporter_drop_in(catalog: ExporterCatalog) -> str:
    """Path of gpufleet's drop-in for the packaged unit of the exporter."""
    return f"{SYSTEMD}{catalog.exporter.services.exporter}.d/gpufleet.conf"


def exporter_units(mode: Mode, catalog: ExporterCatalog) -> tuple[str, ...]:
    """The units of a mode in start order. The last one is the exporter."""
    services = catalog.exporter.services
    return (services.engine, services.exporter) if mode == "systemd" else (UNIT,)


def exporter_files(
    mode: Mode, settings: ExporterSettings, choice: ExporterChoice, catalog: ExporterCatalog
) -> tuple[FileWrite, ...]:
    """The files with the exporter's address and counters."""
    services = catalog.exporter.services
    counters = services.counters
    files = []
    if settings.counters:
        counters = f"{services.folder}/{COUNTERS_NAME}"
        files.append(FileWrite(counters, settings.counters))
    if mode == "systemd":
        text = render_template(
            "exporter/nvidia-dcgm-exporter.conf",
            services=services,
            address=settings.address,
            counters=counters,
        )
        return (*files, FileWrite(exporter_drop_in(catalog), text))
    text = render_template(
        "exporter/gpufleet-dcgm-exporter.service",
        container=EXPORTER_CONTAINER,
        cidfile=CIDFILE,
        image=choice.image,
        address=settings.address,
        counters=counters,
        own_counters=bool(settings.counters),
    )
    return (*files, FileWrite(UNIT_FILE, text))


def files_digest(files: Sequence[FileWrite]) -> str:
    """A digest of the configuration. The record has the running configuration's digest."""
    whole = hashlib.sha256()
    for file in files:
        whole.update(file.path.encode() + b"\0" + file.data + b"\0")
    return whole.hexdigest()


def own_pids(facts: NodeFacts, catalog: ExporterCatalog) -> frozenset[int]:
    """The processes of gpufleet's exporter."""
    return frozenset(daemon.pid for daemon in own_daemons(facts, catalog))


def own_daemons(facts: NodeFacts, catalog: ExporterCatalog) -> tuple[Daemon, ...]:
    """The collectors that gpufleet started, found by files and by the record.

    The record alone is not enough, because it is written last.
    """
    record = facts.provenance.entry(ExporterEntry)
    packaged = record.mode == "systemd" or exporter_drop_in(catalog) in facts.texts
    ours = exporter_units("systemd", catalog) if packaged else ()
    container = facts.texts.get(CIDFILE, "").strip()
    return tuple(
        daemon
        for daemon in facts.collectors
        if daemon.unit in ours or (container and daemon.container == container)
    )


def in_words(daemons: Iterable[Daemon], catalog: ExporterCatalog) -> str:
    """Processes as text: title, process id, and their unit, container or pod."""
    titles = {entry.command: entry.title for entry in catalog.exporter.collectors}
    return "; ".join(
        f"{titles.get(daemon.command, daemon.command)} (process {daemon.pid}{_place(daemon)})"
        for daemon in daemons
    )


def _place(daemon: Daemon) -> str:
    if daemon.in_pod:
        return ", of a pod of Kubernetes"
    if daemon.container:
        return f", in container {daemon.container[:12]}"
    return f", of {daemon.unit}" if daemon.unit else ""
