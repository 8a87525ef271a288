"""`gpufleet doctor`: show one host in depth, or the problems of many."""

from __future__ import annotations

import json
import sys
import time

import click
from rich.console import Console
from rich.text import Text

from gpufleet.cli.output import limit_option, output_options
from gpufleet.cli.reading import read_hosts_and_clusters
from gpufleet.core.console import result_console
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.visible import one_line
from gpufleet.node.catalog import load_catalog
from gpufleet.run.findings import NOT_A_HOST
from gpufleet.status.detail import Detail, details_json, host_details
from gpufleet.status.detail_text import show_detail
from gpufleet.status.models import FleetStatus
from gpufleet.status.rows import fleet_of
from gpufleet.status.text import show_findings, show_status


@click.command()
@click.argument("inventory", type=click.Path())
@limit_option
@click.option("--json", "as_json_", is_flag=True, help="Print JSON: every host in depth.")
@output_options
def doctor(inventory: str, limit: tuple[str, ...], as_json_: bool) -> None:
    """Show one host in depth, or the findings of many.

    Changes nothing. With one host: hardware, driver, packages, runtimes, work on its GPUs, its
    plan and every finding. With several: hosts that look the same in one line, and each finding
    once with its hosts.

    Exit status: 0 every host responded, whatever was found; 1 a host did not respond; 2 usage
    error; 4 --limit matches nothing; 130 interrupted.
    """
    hosts, clusters = read_hosts_and_clusters(inventory, limit)
    now, catalog = int(time.time()), load_catalog()
    fleet = fleet_of(inventory, hosts, clusters, catalog, now)
    found = host_details(hosts, fleet, catalog, now)
    if as_json_:
        click.echo(json.dumps(details_json(found, fleet, now), indent=2))
    else:
        show_all(result_console(), found, fleet)
    answered = all(detail.row.reached for detail in found)
    sys.exit(ExitStatus.CONVERGED if answered else ExitStatus.FAILED)


def show_all(console: Console, found: list[Detail], fleet: FleetStatus) -> None:
    """Print one host in depth, or several grouped by equal state, and name the clusters."""
    if len(found) == 1:
        show_detail(console, found[0])
    elif found:
        each = [(detail.row.name, finding) for detail in found for finding in detail.findings]
        show_status(console, fleet, each)
        hint = f"`gpufleet doctor {fleet.inventory} --limit HOST` shows one host in depth."
        console.print(Text(one_line(hint)))
    show_findings(console, [(row.name, NOT_A_HOST()) for row in fleet.clusters])
