"""Previews of runs, and the file of one: `plan --out` writes it, `apply --plan` reads it."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import click

from gpufleet import __version__
from gpufleet.cli.output import print_note
from gpufleet.core.console import print_finding, result_console
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.live import is_quiet
from gpufleet.core.names import count_noun, group_by_thing
from gpufleet.core.process import run_in_front
from gpufleet.core.visible import one_line
from gpufleet.run.plan_contract import Hosts, contract_of_host, plan_differences
from gpufleet.run.report_file import FileKind, hosts_of_report, report_of_process, write_file

PLAN_FILE = FileKind("a plan of gpufleet", (b'"gpufleet_plan"',))
SCHEMA = 1  # of plan.schema.json


def run_preview(
    command: Sequence[str], *, own_report: bool = False, output: IO[str] | None = None
) -> tuple[int, Hosts | None]:
    """Show a preview with a pyinfra command. Returns its exit status, and the hosts and clusters of
    its report, or None without a report.

    `own_report`: reports that the environment names belong to the run that follows. `output`: takes
    what the preview prints.
    """
    with report_of_process() as (report, environment):
        if not own_report:
            report = Path(os.environ.get("GPUFLEET_REPORT") or report)
            environment = {**os.environ, "GPUFLEET_REPORT": str(report)}
        status = run_in_front(command, environment, output)
        return status, hosts_of_report(report)


def preview_before_run(command: Sequence[str], output: IO[str] | None = None) -> Hosts | None:
    """Show a preview and return its hosts; end the process if it has no plan. The run that follows
    reads the hosts again."""
    status, hosts = run_preview(command, own_report=True, output=output)
    if status not in (ExitStatus.CONVERGED, ExitStatus.FAILED):  # failed: some host is blocked
        sys.exit(status)
    return hosts


def changed_hosts(hosts: Hosts | None) -> int | None:
    """The number of hosts and clusters that a run changed or a preview would change, or None if it
    is unknown."""
    return None if hosts is None else sum(host["changed"] > 0 for host in hosts.values())


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """`check`: hosts ask their repositories; `detailed`: the status says whether there are changes;
    `out`: the file to write; `approved`: the hosts of the plan that a run must match."""

    check: bool = False
    detailed: bool = False
    out: Path | None = None
    approved: Hosts | None = None

    @property
    def deploy(self) -> str:
        return "check" if self.check else "preflight"


NO_OPTIONS = PlanOptions()


def write_plan(how: PlanOptions, inventory: str, hosts: Hosts | None) -> bool:
    """Write the plan with mode 0600. Returns False without a plan, or if writing fails."""
    if how.out is None or hosts is None:
        return False
    whole = {
        "gpufleet_plan": SCHEMA,
        "gpufleet": __version__,
        "inventory": inventory,
        "check": how.check,
        "hosts": {name: contract_of_host(host) for name, host in hosts.items()},
    }
    return write_file(how.out, lambda: json.dumps(whole, indent=2) + "\n")


def read_plan(path: Path) -> PlanOptions:
    """The decisions of a plan, and whether repositories were asked. Raises click.UsageError if the
    file is not a plan."""
    try:
        found = json.loads(path.read_text("utf-8"))
        if found["gpufleet_plan"] != SCHEMA:
            raise ValueError("its schema is of another version")
        hosts: Hosts = {name: {**host, "steps": [*host["steps"]]}
                        for name, host in found["hosts"].items()}  # fmt: skip
        check = bool(found["check"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        why = getattr(error, "strerror", None) or "the file is no plan of this gpufleet"
        raise click.UsageError(
            f"Cannot use --plan {one_line(str(path))}: {why}. "
            "Make it with `gpufleet plan INVENTORY --out FILE`."
        ) from error
    return PlanOptions(check, approved=hosts)


def require_plan(planned: Hosts, command: Sequence[str], *, limited: bool) -> None:
    """End the process and print the differences, unless every host and cluster still has its plan.

    `command`: shows the plan of now, which is printed only if it differs. `limited`: the run covers
    a part of the plan's hosts, such as a canary.
    """
    if not is_quiet():
        print_note("Comparing the hosts with the plan")
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        now = preview_before_run(command, output)
        output.seek(0)
        shown = output.read()
    if not now:  # the preview was interrupted before its report
        click.echo(shown, nl=False)
        click.echo("Refused: no host was compared with the plan; 0 changed. Run the command again.")
        sys.exit(ExitStatus.FAILED)
    if limited:
        planned = {name: host for name, host in planned.items() if name in now}
    found = group_by_thing(plan_differences(planned, now))
    if not found:
        return
    click.echo(shown, nl=False)
    console = result_console()
    for number, (finding, names) in enumerate(found.items(), 1):  # all have the same remedy
        print_finding(console, finding, names, remedy=number == len(found))
    differing = {name for names in found.values() for name in names}
    whole = count_noun(len({*planned, *now}), "host")
    click.echo(f"Refused: the plan differs on {len(differing)} of {whole}; 0 changed")
    sys.exit(ExitStatus.FAILED)
