"""`gpufleet upgrade`: change the drivers of a fleet, host by host.

The modules that carry a run out are imported on use: pyinfra loads gevent, which replaces parts of
the standard library and must come first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpufleet.cli.deploy import INVENTORY_ARGUMENT, PYINFRA_OPTIONS, YES, targets_of
from gpufleet.cli.output import limit_option, metrics_option, output_options
from gpufleet.cli.question import require_confirmation
from gpufleet.cli.upgrade_words import UpgradeGroup, check_options, wanted_of
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.stopped import Stopped
from gpufleet.upgrade.operations.metrics import UPGRADE_METRICS_PREFIX
from gpufleet.upgrade.subjects import OTHER_SUBJECTS, SENTENCES, WantedChange

if TYPE_CHECKING:
    from gpufleet.cli.upgrade_run import Command

TARGET_OPTIONS = ("version", "branch", *OTHER_SUBJECTS, "downgrade")  # of WantedChange
UPGRADE_STATUSES = (
    "Exit status: 0 {success}; 1 a host failed, was passed or left out for another reason, or the "
    "run stopped or could not begin; 2 usage error; 4 --limit matches nothing; 130 interrupted; "
    "143 terminated."
)
TARGETS_REACHED = "every host has the target or is left out on purpose"
ABORTED = (
    "Exit status: 0 no host is out of service; 1 one is, or the run cannot be ended now; 2 usage "
    "error; 4 --limit matches nothing; 130 interrupted."
)
RETURNS = "Return these hosts to their earlier version?"
RELEASES = "Check these hosts and return them to service?"
ENDS = "End the upgrade of these hosts?"


@click.group(
    cls=UpgradeGroup,
    options_metavar="INVENTORY [OPTIONS] [-- PYINFRA_OPTIONS...]",
    subcommand_metavar="| COMMAND INVENTORY [OPTIONS]",
)
def upgrade() -> None:
    """Change the driver of hosts, canaries first, then in waves.

    With --toolkit it changes the container toolkit instead, with --sharing the layout of the GPUs,
    with --reboot it only reboots. A host that fails gets its earlier state back. The same command
    continues an interrupted run, from any machine with the inventory. Ctrl-C pauses the run when
    changed hosts are finished and draining ones are back in service; a second one ends it at once.
    """


def over_hosts(function: Callable[..., ExitStatus]) -> Callable[..., None]:
    """A command over hosts of an inventory, which `function` gets as a Command. A wrong command
    line ends the process before anything else is done. If the command is stopped, its findings are
    printed."""

    @wraps(function)
    def inner(
        inventory: str,
        limit: tuple[str, ...],
        options: tuple[str, ...],
        metrics: Path | None = None,
        **how: Any,
    ) -> None:
        target = {name: how.pop(name) for name in TARGET_OPTIONS if name in how}
        wanted = wanted_of(**target) if target else WantedChange()
        check_options(options)
        targets = targets_of(inventory, limit)
        if "yes" in how:
            require_confirmation(how["yes"] or how.get("only_plan", False), options)
        from gpufleet.cli.upgrade_run import Command

        try:
            command = Command(inventory, targets, options, wanted, metrics)
            sys.exit(function(command, **how))
        except KeyboardInterrupt:  # from the first change on, the run has handlers of its own
            click.echo("\nInterrupted. The same command begins or continues the run.", err=True)
            sys.exit(ExitStatus.INTERRUPTED)
        except Stopped as error:
            for finding in error.findings:
                click.echo(finding.paragraph, err=True)
            sys.exit(ExitStatus.FAILED)

    return INVENTORY_ARGUMENT(limit_option(PYINFRA_OPTIONS(output_options(inner))))


METRICS = metrics_option(UPGRADE_METRICS_PREFIX, "Write metrics of the run to this file (*.prom).")
PLAN = click.option("--plan", "only_plan", is_flag=True, help="Show the plan; change nothing.")


@upgrade.command(epilog=UPGRADE_STATUSES.format(success=TARGETS_REACHED))
@click.option(
    "--to", "version", metavar="VERSION", help="Version to install. Default: that of the inventory."
)
@click.option(
    "--branch", metavar="BRANCH", help="Install the newest version of this branch in the catalog."
)
@click.option(
    "--allow-downgrade", "downgrade", is_flag=True, help="Also change hosts to an older version."
)
@click.option("--toolkit", is_flag=True, help="Change the container toolkit.")
@click.option("--reboot", is_flag=True, help="Reboot the hosts without changing driver or toolkit.")
@click.option("--sharing", is_flag=True, help="Change MIG and ECC of the GPUs (gpu_mig, gpu_ecc).")
@METRICS
@PLAN
@YES
@over_hosts
def start(command: Command, *, only_plan: bool, yes: bool) -> ExitStatus:
    """Plan a run and carry it out, or go on with one.

    Groups of the same GPUs, distribution and kernel have a canary each; waves follow. Processes
    and Jobs on GPUs are waited for; pods that their controllers replace are evicted, and those of
    Jobs too if upgrade_jobs says so.
    """
    return command.run(None if yes else SENTENCES[command.wanted.subject], only_plan=only_plan)


@upgrade.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@over_hosts
def status(command: Command, *, as_json: bool) -> ExitStatus:
    """Show the state of each host, read from the host."""
    return command.show(as_json=as_json)


@upgrade.command(epilog=ABORTED)
@YES
@over_hosts
def abort(command: Command, *, yes: bool) -> ExitStatus:
    """End an unfinished run.

    Drains stop, hosts with packages of the new version are finished, all are returned to service.
    If a process still carries the run out, press Ctrl-C there first.
    """
    return command.abort(None if yes else ENDS)


@upgrade.command(epilog=UPGRADE_STATUSES.format(success="every host has its earlier version"))
@METRICS
@PLAN
@YES
@over_hosts
def rollback(command: Command, *, only_plan: bool, yes: bool) -> ExitStatus:
    """Return hosts to their earlier version.

    Those that the newest run changed, in its waves in reverse. The packages come from the hosts'
    own folders; no repository is asked.
    """
    return command.run(None if yes else RETURNS, "rollback", only_plan=only_plan)


@upgrade.command(
    epilog=UPGRADE_STATUSES.format(success="every host that was left behind is in service")
)
@PLAN
@YES
@over_hosts
def release(command: Command, *, only_plan: bool, yes: bool) -> ExitStatus:
    """Return repaired hosts that a run left out of service.

    Each keeps its version. It is checked as after an upgrade, then returned; one that fails the
    check stays out of service. Other hosts are left alone.
    """
    return command.run(None if yes else RELEASES, only_plan=only_plan, release=True)
