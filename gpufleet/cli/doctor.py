"""`gpufleet doctor`: a verdict on each host and cluster, with its cause and the next command."""

from __future__ import annotations

import time
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
from gpufleet.cli.prolog import judge_states
from gpufleet.core.exit_status import ExitStatus
from gpufleet.doctor.export import (
    DOCTOR_METRICS_PREFIX,
    doctor_junit,
    doctor_metrics_text,
    prolog_line,
)
from gpufleet.doctor.models import Verdict
from gpufleet.doctor.table import all_checks, choose_checks
from gpufleet.run.report_file import JUNIT, NEW_FILE, write_file

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
    known = {check.id for check in all_checks()}
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
@click.option(
    "--bundle",
    metavar="FILE",
    help="Also collect logs, versions and configuration files in a new archive (.tar.gz).",
)
@click.option(
    "--bug-report",
    is_flag=True,
    help="With --bundle: also run nvidia-bug-report.sh on each host, which takes minutes.",
)
@metrics_option(
    DOCTOR_METRICS_PREFIX,
    "Also write the verdicts as metrics for Prometheus (*.prom).",
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
    bundle: str | None,
    bug_report: bool,
    textfile: Path | None,
) -> None:
    """Say what is wrong with hosts and clusters, and what to do.

    Changes nothing. The verdict is PASS, WARNING, CRITICAL or UNKNOWN. The first broken link is the
    cause; failures that follow from it are listed under it. With one host: its verdict, every
    check, and the host in depth. With several: one group for each cause, the worst first.
    """
    if purpose and (as_json_ or bundle):
        raise click.UsageError("--for excludes --json and --bundle.")
    if bug_report and not bundle:
        raise click.UsageError("--bug-report needs --bundle.")
    xml = prepare_output(junit, "--junit", JUNIT)
    archive = prepare_output(bundle, "--bundle", NEW_FILE)
    collected = True
    checks, now = choose_checks(only, skip), int(time.time())
    if not checks:
        raise click.UsageError("--check and --skip leave no check.")
    if purpose:
        judged = judge_states(inventory, limit, checks)
    else:
        # Imported here because plans and pyinfra load slowly, and a prolog needs neither.
        from gpufleet.cli.diagnosis import judge_inventory, judge_with_evidence, print_verdicts

        if archive:
            judged, collected = judge_with_evidence(
                inventory, limit, checks, now, archive, bug_report=bug_report
            )
        else:
            judged = judge_inventory(inventory, limit, checks, now)
    written = xml is None or write_file(xml, partial(doctor_junit, judged.every))
    metrics = partial(doctor_metrics_text, judged, now)
    written = store_metrics(textfile, metrics, DOCTOR_METRICS_PREFIX) and written and collected
    if purpose:
        click.echo(prolog_line(judged))
    else:
        print_verdicts(judged, now, as_json=as_json_)
    status = STATUS_OF_VERDICT[judged.verdict]
    click.get_current_context().exit(status if written else max(status, ExitStatus.FAILED))
