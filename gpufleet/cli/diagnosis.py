"""Reads and judges an inventory for `gpufleet doctor`, and prints the verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import click

from gpufleet.cli.output import print_note
from gpufleet.cli.reading import read_clusters, read_hosts_and_clusters
from gpufleet.core.console import result_console
from gpufleet.core.findings import Finding
from gpufleet.core.inventory import ListedHost
from gpufleet.core.live import is_quiet
from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import one_line
from gpufleet.doctor.cluster_links import ReadCluster
from gpufleet.doctor.document import doctor_json
from gpufleet.doctor.fleet import ReadFleet
from gpufleet.doctor.models import JudgedFleet, Verdict
from gpufleet.doctor.monitoring import ClusterMonitoring
from gpufleet.doctor.text import show_verdicts
from gpufleet.status.clusters import Part, findings_of_cluster
from gpufleet.status.operations import ReadMore


def read_fleet(inventory: str, limit: Sequence[str], more: ReadMore | None = None) -> ReadFleet:
    """Read hosts, then clusters, by state and plan. `more`: as for `read_hosts`."""
    hosts, targets = read_hosts_and_clusters(inventory, limit, health=True, more=more)
    names = [target.name for target in targets]
    planned = read_clusters(inventory, names)
    parts = {name: planned.get(name) for name in names}
    known = [each for each in targets if parts[each.name]]
    read = dict(read_api_servers(known, parts))
    return ReadFleet(inventory, hosts, parts, read, targets, dict(ask_prometheus(known)))


def read_api_servers(
    targets: Sequence[ListedHost], parts: Mapping[str, Part | None]
) -> Iterator[tuple[str, ReadCluster]]:
    """Read the API server of each of these clusters. Prints why one does not answer, unless its
    plan says so."""
    if not targets:
        return
    # Imported here because gevent must replace parts of ssl before a client imports it.
    from gpufleet.doctor.operations.clusters import read_cluster_gpus
    from gpufleet.gpu_stack.operations.accesses import access_of

    for target in targets:
        try:
            yield target.name, read_cluster_gpus(access_of(target))
        except Stopped as stopped:
            said = {each.code for each in findings_of_cluster(parts[target.name])}
            if stopped.findings[0].code not in said:
                note_finding(target.name, stopped.findings[0])


def ask_prometheus(targets: Sequence[ListedHost]) -> Iterator[tuple[str, ClusterMonitoring]]:
    """The readings by the Prometheus of each of these clusters, if gpufleet relies on one."""
    if not targets:
        return
    # Imported here because gevent must replace parts of ssl before a client imports it.
    from gpufleet.doctor.operations.monitoring import read_monitoring
    from gpufleet.gpu_stack.operations.accesses import access_of

    for target in targets:
        with suppress(Stopped):  # settings that are wrong: its plan says so
            if found := read_monitoring(access_of(target), target.data):
                yield target.name, found


def note_finding(name: str, finding: Finding) -> None:
    """Print a finding about a host or cluster on standard error."""
    print_note(f"{finding.code} {one_line(name)}: {finding.message}\n  {finding.remedy}")


def print_verdicts(judged: JudgedFleet, now: int, *, as_json: bool) -> None:
    """Print the verdicts; with --quiet, nothing if all pass."""
    if as_json:
        click.echo(json.dumps(doctor_json(judged, now), indent=2))
    elif not (is_quiet() and judged.verdict is Verdict.PASS):
        show_verdicts(result_console(), judged)
