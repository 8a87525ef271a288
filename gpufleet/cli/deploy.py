"""`gpufleet plan | apply | remove`: run the deploys with pyinfra's own command."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from gpufleet.cli.detailed import DetailedCommand, end_detailed
from gpufleet.cli.output import (
    limit_option,
    output_options,
    prepare_output,
    print_note,
    report_options,
    verbose_option,
    with_verbose,
)
from gpufleet.cli.own_catalog import require_own_catalog
from gpufleet.cli.preview import (
    NO_OPTIONS,
    PLAN_FILE,
    PlanOptions,
    changed_hosts,
    preview_before_run,
    read_plan,
    require_plan,
    run_preview,
    write_plan,
)
from gpufleet.cli.pyinfra_options import (
    SCHEDULER,
    WORKERS_OPTION,
    parse_options,
    permission_options,
)
from gpufleet.cli.question import Confirmation, has_operations, require_confirmation
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.inventory import CLUSTERS, as_argument, option_of
from gpufleet.core.live import is_quiet
from gpufleet.core.paths import shipped_path
from gpufleet.core.python import python_code
from gpufleet.run.report_file import REPORT_OPTIONS
from gpufleet.verify.inventory import Target, limit_targets, load_targets

CONFIG = "config.py"
# Ctrl-C while pyinfra is imported; a run has handlers of its own
UNTIL_STARTED = (
    "import os, signal; signal.signal(signal.SIGINT, "
    "lambda *_: (os.write(2, b'Interrupted.\\n'), os._exit(130))); "
)
START = "import pyinfra_cli; from gpufleet.run.display import start_pyinfra; start_pyinfra()"
DRY = "--dry"  # of pyinfra: the run changes nothing
SUCCESS = {
    "plan": "no host or cluster has a blocker",
    "apply": "every host and cluster is converged",
    "remove": "the removal is complete on every host and cluster",
}
DEPLOY_EPILOG = (
    "Exit status: 0 {success}; 1 one was blocked, failed or is "
    "unreachable; 2 usage error; 4 --limit matches nothing; 130 interrupted."
)
DETAILED = " With --detailed-exitcode: 0 no changes; 1 as before, or usage error; 2 changes."
DETAILED_OPTION = click.option(
    "--detailed-exitcode", "detailed", is_flag=True, help="Exit with 2 if there are changes."
)

INVENTORY_ARGUMENT = click.argument("inventory", type=click.Path())
YES = click.option("-y", "--yes", is_flag=True, help="Skip the confirmation.")
PYINFRA_OPTIONS = click.argument(
    "options",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="[-- PYINFRA_OPTIONS...]",
    callback=with_verbose,
)


@click.command(cls=DetailedCommand, epilog=DEPLOY_EPILOG.format(success=SUCCESS["plan"]) + DETAILED)
@INVENTORY_ARGUMENT
@limit_option
@DETAILED_OPTION
@click.option(
    "--check", is_flag=True, help="Ask each host's repositories for versions and download sizes."
)
@click.option("--out", metavar="FILE", help="Write the plan for `apply --plan`.")
@WORKERS_OPTION
@SCHEDULER
@report_options
@output_options
@verbose_option
@permission_options
@PYINFRA_OPTIONS
def plan(
    inventory: str,
    limit: tuple[str, ...],
    detailed: bool,
    check: bool,
    out: str | None,
    workers: int | None,
    scheduler: str,
    options: tuple[str, ...],
) -> None:
    """Show what apply would do; change nothing.

    Covers the hosts and clusters of INVENTORY, and gpufleet's own steps: operations that your
    deploys/ add are not in it. Reports every blocker of every host at once.
    """
    if workers or scheduler:
        from gpufleet.cli.parts import PartsRequest, run_in_parts  # takes its time to load

        _not_in_parts("--out", out)
        _not_in_parts("--check", check)
        request = PartsRequest(inventory, limit, options, workers, scheduler)
        run_in_parts(request, "plan", detailed=detailed)
    how = PlanOptions(check, detailed, prepare_output(out, "--out", PLAN_FILE))

    def previewing(targets: Iterable[Target]) -> list[str]:
        """Name the user's deploys with operations that a plan does not show."""
        for file in map(deploy_file, deploys_for(targets)):
            if has_operations(file) and not is_quiet():
                dry = shlex.join(["gpufleet", "apply", as_argument(inventory), "--", DRY])
                print_note(f"Your operations in {file} are not in this plan: `{dry}` shows them.")
        return [how.deploy]

    exec_pyinfra(inventory, previewing, limit, options, how=how)


@click.command(
    cls=DetailedCommand, epilog=DEPLOY_EPILOG.format(success=SUCCESS["apply"]) + DETAILED
)
@INVENTORY_ARGUMENT
@limit_option
@YES
@DETAILED_OPTION
@click.option(
    "--plan",
    "planned",
    type=click.Path(),
    help="Do what this file of `plan --out` has, without a question, or nothing; --limit: for a "
    "part of its hosts.",
)
@WORKERS_OPTION
@SCHEDULER
@report_options
@output_options
@verbose_option
@permission_options
@PYINFRA_OPTIONS
def apply(
    inventory: str,
    limit: tuple[str, ...],
    yes: bool,
    detailed: bool,
    planned: str | None,
    workers: int | None,
    scheduler: str,
    options: tuple[str, ...],
) -> None:
    """Install what INVENTORY configures.

    Driver, container toolkit and exporter on hosts, the GPU stack on clusters. Shows the plan and
    asks, unless --yes or --plan is given. Runs pyinfra with deploys/gpu_node.py for hosts and
    deploys/gpu_cluster.py for clusters: those of the working directory, else gpufleet's own.
    """
    ask = None if yes or planned else Confirmation("Apply these changes?", ("preflight",))
    if workers or scheduler:
        from gpufleet.cli.parts import PartsRequest, run_in_parts  # takes its time to load

        _not_in_parts("--plan", planned)
        request = PartsRequest(inventory, limit, options, workers, scheduler)
        run_in_parts(request, "apply", ask, detailed=detailed)
    how = read_plan(Path(planned)) if planned else NO_OPTIONS
    exec_pyinfra(inventory, deploys_for, limit, options, ask, how=replace(how, detailed=detailed))


def _not_in_parts(option: str, given: str | bool | None) -> None:
    if given:
        raise click.UsageError(f"{option} is not possible with --workers.")


@click.command(epilog=DEPLOY_EPILOG.format(success=SUCCESS["remove"]))
@INVENTORY_ARGUMENT
@limit_option
@YES
@report_options
@output_options
@verbose_option
@PYINFRA_OPTIONS
def remove(inventory: str, limit: tuple[str, ...], yes: bool, options: tuple[str, ...]) -> None:
    """Remove what gpufleet installed on hosts and clusters.

    What it did not install stays, and so does what others need: CRDs with objects of users,
    PersistentVolumeClaims, namespaces with other objects. They are named. Shows the plan and asks,
    unless --yes is given.
    """
    ask = None if yes else Confirmation("Remove this?", ("remove",), (DRY,), counts=True)
    exec_pyinfra(inventory, lambda _: ["remove"], limit, options, ask)


def deploys_for(targets: Iterable[Target]) -> list[str]:
    """The deploys for these targets, hosts first."""
    chosen = list(targets)
    hosts = any(not target.is_cluster for target in chosen)
    clusters = any(CLUSTERS in target.groups for target in chosen)
    return [*(["gpu_node"] if hosts else []), *(["gpu_cluster"] if clusters else [])]


def targets_of(inventory: str, limit: Sequence[str]) -> list[Target]:
    """The inventory's targets, or those that the limit names. Raises Stopped."""
    return choose_targets(inventory, limit)[1]


def choose_targets(inventory: str, limit: Sequence[str]) -> tuple[list[Target], list[Target]]:
    """All targets of the inventory, and those that the limit names. Raises Stopped for a wrong
    entry of catalog.d/, an unusable inventory or an unmatched limit."""
    require_own_catalog()
    targets = load_targets(inventory)
    return targets, limit_targets(targets, limit, inventory)


def exec_pyinfra(
    inventory: str,
    deploys: Callable[[list[Target]], Sequence[str]],
    limit: Sequence[str],
    options: Sequence[str],
    ask: Confirmation | None = None,
    *,
    how: PlanOptions = NO_OPTIONS,
) -> None:
    """Replace this process by pyinfra: its output, signals and exit status become the command's.

    `deploys`: the names of the deploys for the chosen targets; `ask`: a question to confirm first.
    This process stays if a plan is written or the status is detailed. Wrong options and inventories
    end it with status 2, an unmatched limit with 4."""
    dry = DRY in parse_options(options)
    require_confirmation(ask is None or dry, options)
    targets = targets_of(inventory, limit)
    files = [deploy_file(name) for name in deploys(targets)]
    if ask and not dry:
        own = any(map(has_operations, files))
        previews = [deploy_file(name) for name in ask.deploys]
        shown = pyinfra_arguments(inventory, previews, limit, [*options, *ask.options])
        ask.put(changed_hosts(preview_before_run([*pyinfra_command(), *shown])), own=own)
    if how.approved is not None and not dry:
        for variable, option, kind in REPORT_OPTIONS:  # a refused run leaves no older report
            prepare_output(os.environ.get(variable), option, kind)
        shown = pyinfra_arguments(inventory, [deploy_file(how.deploy)], limit, options)
        require_plan(how.approved, [*pyinfra_command(), *shown], limited=bool(limit))
    words = pyinfra_arguments(inventory, files, limit, options, lists=dry)
    if not is_quiet():
        print_note(f"Running {' and '.join(map(str, files))}")  # options may hold secrets
    if how.detailed or how.out:
        status, hosts = run_preview([*pyinfra_command(), *words])
        if how.out and not write_plan(how, inventory, hosts):
            sys.exit(status or ExitStatus.FAILED)
        if how.detailed:
            end_detailed(status, changed_hosts(hosts))
        sys.exit(status)
    os.execv(sys.executable, [*pyinfra_command(), *words])


def pyinfra_command() -> list[str]:
    return python_code(UNTIL_STARTED + START)


def deploy_file(name: str) -> Path:
    """The deploy of that name: the working directory's, or else gpufleet's own."""
    own = Path("deploys", f"{name}.py")
    return own if own.is_file() else shipped_path("deploys") / own.name


def pyinfra_arguments(
    inventory: str,
    deploys: Sequence[Path],
    limit: Sequence[str],
    options: Sequence[str],
    *,
    lists: bool = False,
) -> list[str]:
    """pyinfra's arguments for a run that asks nothing. `lists`: with --dry, it lists operations."""
    config = [] if Path(CONFIG).is_file() else ["--config", str(shipped_path(CONFIG))]
    chosen = [word for pattern in limit for word in option_of(pattern)]
    yes = [] if lists else ["-y"]
    return [*yes, *config, *chosen, *options, as_argument(inventory), *map(str, deploys)]
