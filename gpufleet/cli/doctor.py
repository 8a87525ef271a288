"""`gpufleet doctor`: a verdict on each host and cluster, with its cause and the next command."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

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
from gpufleet.core.live import QUIET, is_quiet
from gpufleet.doctor.export import (
    DOCTOR_METRICS_PREFIX,
    doctor_json,
    doctor_junit,
    doctor_metrics_text,
    prolog_line,
)
from gpufleet.doctor.fleet import JudgedFleet, judge_fleet, judge_states
from gpufleet.doctor.judge import choose_checks
from gpufleet.doctor.models import DoctorCheck, Verdict, load_checks
from gpufleet.doctor.text import show_verdicts
from gpufleet.node.catalog import load_catalog
from gpufleet.run.report_file import JUNIT, write_file

DOCTOR_EPILOG = (
    "Exit status: 0 every verdict is PASS; 1 the worst is WARNING; 2 a host or cluster is CRITICAL "
    "or UNKNOWN, which includes one that does not respond; also 2, with output on standard error "
    "only, for wrong usage; 4 --limit matches nothing; 130 interrupted."
)
STATUS_OF_VERDICT = {
    Verdict.PASS: ExitStatus.CONVERGED,
    Verdict.WARNING: ExitStatus.WARNING,
    Verdict.UNKNOWN: ExitStatus.CRITICAL,
    Verdict.CRITICAL: ExitStatus.CRITICAL,
}


def known_checks(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """The checks that an option names. Raises click.BadParameter for an unknown one."""
    ids = [name.strip() for each in given for name in each.split(",")]
    known = {check.id for check in load_checks().checks}
    if unknown := [name for name in ids if name not in known]:
        page = "docs/reference/doctor-checks.md lists all checks"
        raise click.BadParameter(f"There is no check {unknown[0]!r}; {page}.", context)
    return tuple(ids)


@click.command(epilog=DOCTOR_EPILOG)
@click.argument("inventory", type=click.Path())
@limit_option
@click.option(
    "--check",
    "only",
    metavar="ID",
    multiple=True,
    callback=known_checks,
    help="Only this check; repeatable, or several with commas between.",
)
@click.option(
    "--skip",
    metavar="ID",
    multiple=True,
    callback=known_checks,
    help="Not this check; repeatable, or several with commas between.",
)
@click.option(
    "--for",
    "purpose",
    type=click.Choice(["prolog"]),
    help="Print one line, for the prolog or epilog of a batch system; make no plan.",
)
@click.option("--json", "as_json_", is_flag=True, help="Print JSON: every host in depth.")
@click.option("--junit", metavar="FILE", help="Also write the checks as JUnit XML.")
@metrics_option(
    DOCTOR_METRICS_PREFIX,
    "Also write metrics for node_exporter's textfile collector (*.prom).",
    "--textfile",
)
@output_options
def doctor(
    inventory: str,
    limit: tuple[str, ...],
    only: tuple[str, ...],
    skip: tuple[str, ...],
    purpose: str | None,
    as_json_: bool,
    junit: str | None,
    textfile: Path | None,
) -> None:
    """Say what is wrong with hosts and clusters, and which command comes next.

    Changes nothing. The verdict is PASS, WARNING, CRITICAL or UNKNOWN. The first broken link is the
    cause; failures that follow from it are listed under it. With one host: its verdict, every
    check, and the host in depth. With several: one group for each cause, the worst first.
    """
    if purpose and as_json_:
        raise click.UsageError("--for and --json exclude each other.")
    xml = prepare_output(junit, "--junit", JUNIT)
    checks, now = choose_checks(only, skip), int(time.time())
    judged = _judge(inventory, limit, checks, now, plan=not purpose)
    written = xml is None or write_file(xml, partial(doctor_junit, judged.every))
    metrics = partial(doctor_metrics_text, judged, now)
    written = store_metrics(textfile, metrics, DOCTOR_METRICS_PREFIX) and written
    if purpose:
        click.echo(prolog_line(judged))
    elif as_json_:
        click.echo(json.dumps(doctor_json(judged, now), indent=2))
    elif not (is_quiet() and judged.verdict is Verdict.PASS):
        show_verdicts(result_console(), judged)
    status = STATUS_OF_VERDICT[judged.verdict]
    click.get_current_context().exit(status if written else max(status, ExitStatus.FAILED))


def _judge(
    inventory: str, limit: Sequence[str], checks: Sequence[DoctorCheck], now: int, *, plan: bool
) -> JudgedFleet:
    """Read and judge. Without `plan`, only hosts are read, and no progress is printed."""
    if not plan:
        os.environ[QUIET] = "1"
    hosts, names = read_hosts_and_clusters(inventory, limit)
    if not plan:
        return judge_states(inventory, hosts, checks)
    parts = read_clusters(inventory, names)
    clusters = {name: parts.get(name) for name in names}
    return judge_fleet(inventory, hosts, clusters, checks, load_catalog(), now)
