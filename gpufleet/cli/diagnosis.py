"""Reads and judges an inventory for `gpufleet doctor`, and prints the verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import click

from gpufleet.cli.deploy import targets_of
from gpufleet.cli.output import print_note
from gpufleet.cli.reading import read_clusters, read_hosts_and_clusters
from gpufleet.core.console import result_console
from gpufleet.core.findings import Finding
from gpufleet.core.inventory import exact_limit
from gpufleet.core.live import is_quiet
from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import one_line
from gpufleet.doctor.cluster_links import ReadCluster
from gpufleet.doctor.document import doctor_json
from gpufleet.doctor.fleet import ReadFleet
from gpufleet.doctor.models import JudgedFleet, Verdict
from gpufleet.doctor.text import show_verdicts
from gpufleet.status.clusters import Part, findings_of_cluster
from gpufleet.status.operations import ReadMore
from gpufleet.verify.inventory import Target


def read_fleet(inventory: str, limit: Sequence[str], more: ReadMore | None = None) -> ReadFleet:
    """Read hosts, then clusters, by state and plan. `more`: as for `read_hosts`."""
    hosts, names = read_hosts_and_clusters(inventory, limit, health=True, more=more)
    parts = read_clusters(inventory, names)
    read = dict(read_api_servers(inventory, parts))
    return ReadFleet(inventory, hosts, {name: parts.get(name) for name in names}, read)


def read_api_servers(
    inventory: str, parts: Mapping[str, Part]
) -> Iterator[tuple[str, ReadCluster]]:
    """What the API server of each of these clusters says, if it answers. Prints why one does not,
    unless its plan says so."""
    if not parts:
        return
    # Imported here because gevent must replace parts of ssl before a client imports it.
    from gpufleet.doctor.operations.clusters import read_cluster_gpus
    from gpufleet.gpu_stack.operations.accesses import access_of

    for target in clusters_of(inventory, parts):
        try:
            yield target.name, read_cluster_gpus(access_of(target))
        except Stopped as stopped:
            said = {each.code for each in findings_of_cluster(parts[target.name])}
            if stopped.findings[0].code not in said:
                note_finding(target.name, stopped.findings[0])


def clusters_of(inventory: str, names: Iterable[str]) -> list[Target]:
    """These clusters of the inventory, with their data."""
    return targets_of(inventory, [exact_limit(name) for name in names])


def note_finding(name: str, finding: Finding) -> None:
    """Print a finding about a host or cluster on standard error."""
    print_note(f"{finding.code} {one_line(name)}: {finding.message}\n  {finding.remedy}")


def print_verdicts(judged: JudgedFleet, now: int, *, as_json: bool) -> None:
    """Print the verdicts; with --quiet, nothing if all pass."""
    if as_json:
        click.echo(json.dumps(doctor_json(judged, now), indent=2))
    elif not (is_quiet() and judged.verdict is Verdict.PASS):
        show_verdicts(result_console(), judged)
