"""Reads and judges an inventory for `gpufleet doctor`, and prints the verdicts."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from gpufleet.cli.reading import read_clusters, read_hosts_and_clusters
from gpufleet.core.console import result_console
from gpufleet.core.live import is_quiet
from gpufleet.doctor.document import doctor_json
from gpufleet.doctor.fleet import judge_fleet
from gpufleet.doctor.models import DoctorCheck, JudgedFleet, Verdict
from gpufleet.doctor.text import show_verdicts
from gpufleet.node.catalog import load_catalog
from gpufleet.status.clusters import Part
from gpufleet.status.models import SeenHost


def judge_inventory(
    inventory: str, limit: Sequence[str], checks: Sequence[DoctorCheck], now: int
) -> JudgedFleet:
    """The verdicts on the hosts and clusters of an inventory, by state and plan."""
    hosts, clusters = read_fleet(inventory, limit)
    return judge_fleet(inventory, hosts, clusters, checks, load_catalog(), now)


def read_fleet(
    inventory: str, limit: Sequence[str]
) -> tuple[list[SeenHost], dict[str, Part | None]]:
    """The hosts of an inventory, and its clusters by name: the part of a plan's report."""
    hosts, names = read_hosts_and_clusters(inventory, limit, health=True)
    parts = read_clusters(inventory, names)
    return hosts, {name: parts.get(name) for name in names}


def print_verdicts(judged: JudgedFleet, now: int, *, as_json: bool) -> None:
    """Print the verdicts; with --quiet, nothing if all pass."""
    if as_json:
        click.echo(json.dumps(doctor_json(judged, now), indent=2))
    elif not (is_quiet() and judged.verdict is Verdict.PASS):
        show_verdicts(result_console(), judged)
