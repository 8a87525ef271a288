"""`gpufleet upgrade`: the drivers of a fleet, host by host."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from gpufleet.cli.deploy import (
    INVENTORY,
    OPTIONS,
    YES,
    confirmed,
    targets_of,
)
from gpufleet.cli.output import limit_option, output_options
from gpufleet.cli.upgrade_group import StartCommand, UpgradeGroup
from gpufleet.cli.upgrade_options import check_options
from gpufleet.cli.upgrade_run import (
    PlannedRun,
    aborted,
    carry_out,
    plan_rollback,
    plan_run,
    reopened,
)
from gpufleet.cli.upgrade_runs import paused, to_change
from gpufleet.cli.upgrade_wanted import wanted_of
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding
from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import each_line, one_line
from gpufleet.upgrade.operations.metrics_file import refusal
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.show import plan_text, run_state, status_dict, status_text
from gpufleet.upgrade.subjects import RETURNS, SENTENCES

STATUSES = (
    "Exit status: 0 {success}, or the run was paused; 1 a host failed, was passed over, not "
    "reached or left out for another reason, or the run stopped or could not begin; 2 usage error; "
    "{more}130 interrupted; 143 terminated."
)
TARGETS = "every host has the target or is left out on purpose"
LIMITED = "4 --limit matches nothing; "
ABORTED = (
    "Exit status: 0 the run is over, or its process is asked to end it; 1 it cannot be ended now, "
    "or a host stays out of service; 2 usage error; 130 interrupted."
)
RUN = click.option(
    "--run", "name", default="", metavar="RUN", help="Run to use. Default: the newest."
)
UNFINISHED = click.option(
    "--run", "name", default="", metavar="RUN", help="Run to use. Default: the unfinished one."
)


@click.group(
    cls=UpgradeGroup,
    options_metavar="INVENTORY [OPTIONS] [-- PYINFRA_OPTIONS...]",
    subcommand_metavar="| COMMAND [OPTIONS]",
)
def upgrade() -> None:
    """Change the driver of hosts, canaries first, then in waves.

    With --toolkit it changes the container toolkit instead, with --reboot it only reboots. A host
    that fails gets its earlier packages back.
    """


def boundary(function: Callable[..., None]) -> Callable[..., None]:
    """End the process with the findings of what stops a command."""

    def inner(*args: Any, **kwargs: Any) -> None:
        try:
            function(*args, **kwargs)
        except Stopped as error:
            for finding in error.findings:
                click.echo(text_of(finding), err=True)
            sys.exit(ExitStatus.FAILED)

    inner.__doc__, inner.__name__ = function.__doc__, function.__name__
    return inner


def text_of(finding: Finding) -> str:
    return f"{finding.code} {finding.message}\n  {finding.remedy}"


def metrics_file(context: click.Context, option: click.Parameter, path: str | None) -> str | None:
    """The value of --metrics. Raises click.UsageError for a file that is not to be replaced."""
    if path is not None and (why := refusal(Path(path))):
        raise click.UsageError(
            f"Cannot write --metrics {one_line(path)}: {one_line(why)}.", context
        )
    return path


@upgrade.command(
    cls=StartCommand,
    epilog=STATUSES.format(success=TARGETS, more=LIMITED),
)
@INVENTORY
@click.option(
    "--to",
    "version",
    metavar="VERSION",
    help="Version to install. Default: that of the inventory.",
)
@click.option(
    "--branch", metavar="BRANCH", help="Install the newest version of this branch in the catalog."
)
@click.option("--toolkit", is_flag=True, help="Change the container toolkit.")
@click.option("--reboot", is_flag=True, help="Reboot the hosts without changing driver or toolkit.")
@limit_option
@click.option(
    "--metrics",
    metavar="FILE",
    callback=metrics_file,
    help="Keep metrics of the run in this file (*.prom).",
)
@click.option("--plan", "only_plan", is_flag=True, help="Show the plan; change nothing.")
@YES
@OPTIONS
@output_options
@boundary
def start(
    inventory: str,
    version: str | None,
    branch: str | None,
    toolkit: bool,
    reboot: bool,
    limit: tuple[str, ...],
    metrics: str | None,
    only_plan: bool,
    yes: bool,
    options: tuple[str, ...],
) -> None:
    """Plan a run over the hosts of INVENTORY, and carry it out.

    Groups of the same GPUs, distribution and kernel have a canary each; waves follow. Processes
    and Jobs on GPUs are waited for; pods that their controllers replace are evicted, and those of
    Jobs too where upgrade_jobs says so. An unfinished run over the same inventory is continued by
    `resume`.
    """
    wanted = wanted_of(version, branch, toolkit=toolkit, reboot=reboot)
    check_options(options)
    targets = targets_of(inventory, limit)
    confirmed(yes or only_plan, options)
    run = plan_run(inventory, targets, options, wanted, say, changes=not only_plan)
    click.echo(plan_text(run.plan, run.work.items(), run.nodes, run.ending.items()))
    if only_plan or not run.plan.hosts:
        sys.exit(ExitStatus.FAILED if run.plan.blocked else ExitStatus.CONVERGED)
    if not yes:
        click.confirm(SENTENCES[wanted.subject], abort=True, err=True)
    sys.exit(carry_out(run.store(say, metrics), say, run.standby))


@upgrade.command()
@RUN
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@output_options
@boundary
def status(name: str, as_json: bool) -> None:
    """Show where the hosts of a run are."""
    store = Store.find(name)
    progress = store.progress()
    order, _ = store.head()
    about = (store.name, progress, order.inventory, run_state(progress, locked=store.is_locked))
    click.echo(json.dumps(status_dict(*about), indent=2) if as_json else status_text(*about))


@upgrade.command()
@UNFINISHED
@boundary
def pause(name: str) -> None:
    """Start no more hosts, finish those in progress, then exit."""
    store = paused(name)
    more = f"`gpufleet upgrade resume --run {store.name}` continues it"
    click.echo(f"{store.name}: pause requested; {more}")


@upgrade.command(epilog=STATUSES.format(success=TARGETS, more=""))
@UNFINISHED
@output_options
@boundary
def resume(name: str) -> None:
    """Continue a run that was paused or interrupted."""
    store = to_change(name)
    sys.exit(carry_out(reopened(store), say))


@upgrade.command(epilog=ABORTED)
@UNFINISHED
@click.option(
    "--cluster-gone",
    is_flag=True,
    help="Treat nodes of unreachable clusters as deleted.",
)
@YES
@output_options
@boundary
def abort(name: str, cluster_gone: bool, yes: bool) -> None:
    """End a run: check its hosts and return them to service.

    Its drains stop. With --cluster-gone it asks for each unreachable cluster whether it is gone:
    its nodes then count as deleted, and those that still exist stay cordoned.
    """
    store = to_change(name)
    if cluster_gone:
        confirmed(yes, ())

    def is_gone(question: str) -> bool:
        return cluster_gone and (yes or click.confirm(question, err=True))

    status = aborted(store, say, is_gone)
    if status is not None:
        sys.exit(status)
    click.echo(f"{store.name}: abort requested of the process that carries it out")
    if cluster_gone:
        say("that process does not know --cluster-gone: interrupt it, then repeat the command")
        sys.exit(ExitStatus.FAILED)


@upgrade.command(epilog=STATUSES.format(success="every host has its earlier version", more=""))
@RUN
@YES
@output_options
@boundary
def rollback(name: str, yes: bool) -> None:
    """Return the hosts of a run to their earlier version.

    Its waves are taken in reverse. The packages come from the hosts' own folders; no repository is
    asked.
    """
    run: PlannedRun = plan_rollback(to_change(name, unfinished=False), say)
    confirmed(yes, ())
    click.echo(plan_text(run.plan, nodes=run.nodes))
    if not yes:
        click.confirm(RETURNS[run.plan.subject], abort=True, err=True)
    sys.exit(carry_out(run.store(say), say))


def say(line: str) -> None:
    with suppress(OSError):  # the terminal is gone; the record of the run has it
        click.echo(each_line(line), err=True)
