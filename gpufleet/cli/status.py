"""`gpufleet status`: show the hosts of an inventory in one table."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from gpufleet.cli.detailed import DetailedCommand
from gpufleet.cli.output import (
    limit_option,
    metrics_option,
    output_options,
    prepare_output,
    store_metrics,
)
from gpufleet.cli.reading import read_clusters, read_hosts_and_clusters
from gpufleet.core.console import result_console
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.live import is_quiet
from gpufleet.node.catalog import load_catalog
from gpufleet.run.report_file import FileKind, write_file
from gpufleet.status.clusters import cluster_rows
from gpufleet.status.export import as_csv, fleet_json
from gpufleet.status.gres import as_gres
from gpufleet.status.groups import PROPERTIES, has_property
from gpufleet.status.metrics import STATUS_METRICS_PREFIX, status_metrics_text
from gpufleet.status.models import FLAGS, Flag
from gpufleet.status.page import as_html
from gpufleet.status.rows import fleet_of
from gpufleet.status.text import show_groups, show_status

STATUS_PAGE = FileKind("a page of `gpufleet status`", (b'content="gpufleet status',))
STATUS_EPILOG = (
    "Exit status: 0 every host and cluster responded, whatever was found; 1 one did not, or has a "
    "flag of --fail-on; 2 usage error; 4 --limit matches nothing; 130 interrupted. With --drift: 0 "
    "none differs from its settings; 1 one did not respond or is blocked, or usage error; 2 one "
    "differs."
)


def parse_flags(context: click.Context, option: click.Parameter, given: str) -> tuple[Flag, ...]:
    """The flags of --fail-on. Raises click.BadParameter for an unknown flag."""
    names = [name.strip() for name in given.split(",")] if given else []
    if unknown := [name for name in names if name not in FLAGS]:
        raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join(FLAGS)}", context)
    return tuple(flag for flag in FLAGS if flag in names)


@click.command(cls=DetailedCommand, epilog=STATUS_EPILOG)
@click.argument("inventory", type=click.Path())
@limit_option
@click.option(
    "--group-by",
    "by",
    metavar="PROPERTY",
    help=f"One line for each value: {', '.join(PROPERTIES)}, or a data key, such as rack.",
)
@click.option("--json", "as_json_", is_flag=True, help="Print JSON instead of a table.")
@click.option("--csv", "as_csv_", is_flag=True, help="Print CSV instead of a table.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["gres"]),
    help="Print lines for another program. gres: for Slurm's gres.conf and slurm.conf.",
)
@click.option("--html", metavar="FILE", help="Also write a self-contained HTML page.")
@click.option("--drift", is_flag=True, help="Exit with 2 where a host differs from its settings.")
@click.option(
    "--fail-on",
    metavar="FLAGS",
    default="",
    callback=parse_flags,
    help="Exit with 1 where a host has one of these flags, as in gpu-fault,reboot.",
)
@metrics_option(STATUS_METRICS_PREFIX, "Write the result as metrics for Prometheus (*.prom).")
@output_options
def status(
    inventory: str,
    limit: tuple[str, ...],
    by: str | None,
    as_json_: bool,
    as_csv_: bool,
    form: str | None,
    html: str | None,
    drift: bool,
    fail_on: tuple[Flag, ...],
    metrics: Path | None,
) -> None:
    """Show hosts in one table: GPUs, versions and findings.

    Changes nothing. Hosts that look the same share a line; each flag is explained below the table.
    """
    if sum((as_json_, as_csv_, form is not None)) > 1:
        raise click.UsageError("--json, --csv and --format exclude each other.")
    page = prepare_output(html, "--html", STATUS_PAGE, keep=True)
    hosts, clusters = read_hosts_and_clusters(inventory, limit)
    names = [cluster.name for cluster in clusters]
    parts = read_clusters(inventory, names)
    now = int(time.time())
    fleet = fleet_of(inventory, hosts, (), load_catalog(), now)
    fleet = replace(fleet, clusters=cluster_rows(names, parts))
    if by and not has_property(fleet, by):
        known = ", ".join(PROPERTIES)
        raise click.UsageError(f"--group-by {by}: no host has this data key; or use {known}.")
    written = page is None or write_file(page, lambda: as_html(fleet, now))
    text = partial(status_metrics_text, fleet, now)
    written = store_metrics(metrics, text, STATUS_METRICS_PREFIX) and written
    if as_json_:
        click.echo(json.dumps(fleet_json(fleet, now, by), indent=2))
    elif form:
        click.echo(as_gres(fleet), nl=False)
    elif as_csv_:
        click.echo(as_csv(fleet, now, by), nl=False)
    elif is_quiet() and fleet.is_silent:
        pass
    elif by:
        show_groups(result_console(), fleet, by)
    else:
        show_status(result_console(), fleet)
    ended = fleet.exit_status(fail_on, drift=drift) if written else ExitStatus.FAILED
    click.get_current_context().exit(ended)
