"""`gpufleet adopt`: show the effect of a run on hosts whose drivers gpufleet did not install."""

from __future__ import annotations

import sys
import time

import click

from gpufleet.cli.output import limit_option, output_options
from gpufleet.cli.reading import read_hosts_and_clusters
from gpufleet.core.console import result_console
from gpufleet.core.exit_status import ExitStatus
from gpufleet.node.catalog import load_catalog
from gpufleet.status.adoption import adoption_of, show_adoptions
from gpufleet.status.rows import fleet_of
from gpufleet.status.text import show_findings


@click.command()
@click.argument("inventory", type=click.Path())
@limit_option
@output_options
def adopt(inventory: str, limit: tuple[str, ...]) -> None:
    """Show what stays and what changes on hosts that others set up.

    Changes nothing. For each host: the lines to add to INVENTORY, so that nothing that works is
    replaced; what then stays as it is; the steps of gpufleet apply; and what blocks it. Hosts that
    are alike are shown once.

    Exit status: 0 every host responded, whatever was found; 1 a host did not respond; 2 usage
    error; 4 --limit matches nothing; 130 interrupted.
    """
    hosts, clusters = read_hosts_and_clusters(inventory, limit)
    now, catalog = int(time.time()), load_catalog()
    fleet = fleet_of(inventory, hosts, [each.name for each in clusters], catalog, now)
    found = {
        host.name: adoption_of(host, catalog, now)
        for host, row in zip(hosts, fleet.rows, strict=True)
        if row.reached
    }
    console = result_console()
    known = {name: adoption for name, adoption in found.items() if adoption}
    show_adoptions(console, known.items())
    blockers = [(name, each) for name, adoption in known.items() for each in adoption.blockers]
    rest = [row for row in fleet.rows if row.name not in known]
    show_findings(console, [*blockers, *((row.name, n.finding) for row in rest for n in row.notes)])
    sys.exit(ExitStatus.CONVERGED if len(found) == len(hosts) else ExitStatus.FAILED)
