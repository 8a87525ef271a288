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
from gpufleet.core.visible import one_line
from gpufleet.doctor.export import (
    DOCTOR_METRICS_PREFIX,
    doctor_junit,
    doctor_metrics_text,
    prolog_line,
)
from gpufleet.doctor.fix import fixable_step
from gpufleet.doctor.models import DoctorCheck, Verdict
from gpufleet.doctor.table import all_checks, choose_checks
from gpufleet.run.interrupts import ended_by_interrupt
from gpufleet.run.report_file import JUNIT, NEW_FILE, write_file

DOCTOR_EPILOG = (
    "Exit status: 0 every verdict is PASS; 1 the worst is WARNING; 2 a host or cluster is CRITICAL "
    "or UNKNOWN, which includes one that does not respond; also 2, with output on standard error "
    "only, for wrong usage; 4 --limit matches nothing; 130 interrupted. With --fix, by the "
    "verdicts after it; 1 if it is declined; 2 if the check has no safe fix."
)
STATUS_OF_VERDICT = {
    Verdict.PASS: ExitStatus.CONVERGED,
    Verdict.WARNING: ExitStatus.WARNING,
    Verdict.UNKNOWN: ExitStatus.CRITICAL,
    Verdict.CRITICAL: ExitStatus.CRITICAL,
}


def known_checks(
    context: click.Context, option: click.Parameter | None, given: tuple[str, ...]
) -> tuple[str, ...]:
    """The checks that an option names. Raises click.BadParameter for an unknown one."""
    ids = [name.strip() for each in given for name in each.split(",")]
    known = {check.id for check in all_checks()}
    if unknown := [name for name in ids if name not in known]:
        page = "docs/reference/doctor-checks.md lists all checks"
        raise click.BadParameter(f"There is no check {unknown[0]!r}; {page}.", context)
    return tuple(ids)


def check_to_fix(name: str, inventory: str, *, yes: bool) -> DoctorCheck:
    """The check that --fix names. Raises click.UsageError for one without a safe fix, or if the fix
    cannot be confirmed."""
    # Imported here because a prolog does not need it.
    from gpufleet.cli.question import require_confirmation

    names = known_checks(click.get_current_context(), None, (name,))
    if len(names) > 1:
        raise click.UsageError("--fix takes one check.")
    check = next(each for each in all_checks() if each.id == names[0])
    if fixable_step(check) is None:
        shows = f"gpufleet doctor {one_line(inventory)} --check {check.id}"
        raise click.UsageError(f"{check.id} has no safe fix. `{shows}` shows its next steps.")
    require_confirmation(yes, ())
    return check


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
@click.option(
    "--fix", metavar="ID", help="Run the safe fix of this failed check, if you confirm it."
)
@click.option("--yes", is_flag=True, help="Run the fix without a question.")
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
    fix: str | None,
    yes: bool,
    as_json_: bool,
    junit: str | None,
    bundle: str | None,
    bug_report: bool,
    textfile: Path | None,
) -> None:
    """Say what is wrong with hosts and clusters, and what to do.

    Changes nothing without --fix. The verdict is PASS, WARNING, CRITICAL or UNKNOWN. The first
    broken link is the cause; failures that follow from it are listed under it. With one host: its
    verdict, every check, and the host in depth. With several: one group for each cause, the worst
    first.
    """
    if purpose and (as_json_ or bundle):
        raise click.UsageError("--for excludes --json and --bundle.")
    if bug_report and not bundle:
        raise click.UsageError("--bug-report needs --bundle.")
    wanted = check_to_fix(fix, inventory, yes=yes) if fix else None
    if wanted and (purpose or as_json_ or only or skip or bundle):
        raise click.UsageError("--fix excludes --check, --skip, --for, --json and --bundle.")
    if yes and not wanted:
        raise click.UsageError("--yes is only for --fix.")
    xml = prepare_output(junit, "--junit", JUNIT)
    archive = prepare_output(bundle, "--bundle", NEW_FILE)
    collected = True
    checks, now = choose_checks(only, skip), int(time.time())
    if not checks:
        raise click.UsageError("--check and --skip leave no check.")
    if purpose:
        judged = judge_states(inventory, limit, checks)
    elif wanted:
        with ended_by_interrupt():
            from gpufleet.cli.diagnosis import print_verdicts
            from gpufleet.cli.fixing import fix_inventory

        judged = fix_inventory(inventory, limit, wanted, now, yes=yes)
    else:
        # Imported here because plans and pyinfra load slowly, and a prolog needs neither.
        with ended_by_interrupt():
            from gpufleet.cli.diagnosis import print_verdicts, read_fleet
            from gpufleet.cli.evidence import judge_with_evidence

        if archive:
            judged, collected = judge_with_evidence(
                inventory, limit, checks, now, archive, bug_report=bug_report
            )
        else:
            judged = read_fleet(inventory, limit).judge(checks, now)
    written = xml is None or write_file(xml, partial(doctor_junit, judged.every))
    metrics = partial(doctor_metrics_text, judged, now)
    written = store_metrics(textfile, metrics, DOCTOR_METRICS_PREFIX) and written and collected
    status = STATUS_OF_VERDICT[judged.verdict]
    try:
        if purpose:
            click.echo(prolog_line(judged))
        else:
            print_verdicts(judged, now, as_json=as_json_)
    except (OSError, SystemExit) as error:  # rich exits with 1 if the reader has ended
        raise SystemExit(max(status, ExitStatus.FAILED)) from error
    click.get_current_context().exit(status if written else max(status, ExitStatus.FAILED))
