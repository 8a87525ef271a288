"""The file of `plan --out` and `apply --plan`: the decisions for each host and cluster."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gpufleet import __version__
from gpufleet.cli.output import print_note
from gpufleet.cli.preview import Hosts, preview_before_run
from gpufleet.core.console import print_finding, result_console
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding
from gpufleet.core.live import is_quiet
from gpufleet.core.names import group_by_thing
from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import one_line
from gpufleet.run import findings
from gpufleet.run.report_file import FileKind, prepare_file, write_file

KIND = FileKind("a plan of gpufleet", (b'"gpufleet_plan"',))
SCHEMA = 1  # of plan.schema.json
OF_PLAN = ("steps", "versions", "releases", "digests")
OF_IMPACT = ("sources", "files", "reboot", "unloads_driver")  # the rest depends on current work


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """`check`: hosts ask their repositories; `detailed`: the status says whether a plan has
    changes; `out`: the file to write; `approved`: the hosts of the plan that a run must match."""

    check: bool = False
    detailed: bool = False
    out: Path | None = None
    approved: Hosts | None = None

    @property
    def deploy(self) -> str:
        return "check" if self.check else "preflight"


NO_OPTIONS = PlanOptions()


def plan_file_text(inventory: str, hosts: Hosts, *, check: bool = False) -> str:
    """The plan of a preview, as JSON."""
    decisions = {name: contract_of_host(host) for name, host in hosts.items()}
    whole = {"gpufleet_plan": SCHEMA, "gpufleet": __version__, "inventory": inventory}
    whole |= {"check": check}
    return json.dumps(whole | {"hosts": decisions}, indent=2) + "\n"


def contract_of_host(host: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a host's report that a run must match."""
    plan, impact = host["plan"], host["plan"].get("impact", {})
    kept = {name: plan[name] for name in OF_PLAN if name in plan}
    kept |= {name: impact[name] for name in OF_IMPACT if name in impact}
    return {"status": host["status"], **kept}


def prepare_plan(path: str) -> Path:
    """The path of the plan. Raises click.UsageError if the file must not be replaced."""
    try:
        return prepare_file(path, "--out", KIND)
    except Stopped as stopped:
        raise click.UsageError(str(stopped)) from stopped


def write_plan(how: PlanOptions, inventory: str, hosts: Hosts | None) -> bool:
    """Write the plan with mode 0600. Returns False without a plan, or if writing fails."""
    if how.out is None or hosts is None:
        return False
    return write_file(how.out, lambda: plan_file_text(inventory, hosts, check=how.check))


def require_plan(planned: Hosts, command: Sequence[str], *, limited: bool) -> None:
    """End the process and print the differences, unless every host and cluster still has its plan.

    `command`: shows the plan of now, which is printed only if it differs. `limited`: the run covers
    a part of the plan's hosts, such as a canary.
    """
    if not is_quiet():
        print_note("Comparing the hosts with the plan")
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        now = preview_before_run(command, output) or {}
        output.seek(0)
        shown = output.read()
    if limited:
        planned = {name: host for name, host in planned.items() if name in now}
    found = group_by_thing(plan_differences(planned, now))
    if not found:
        return
    click.echo(shown, nl=False)
    for finding, names in found.items():
        print_finding(result_console(errors=True), finding, names)
    sys.exit(ExitStatus.FAILED)


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


def plan_differences(planned: Hosts, now: Hosts) -> list[tuple[str, Finding]]:
    """Each host and cluster with a different plan now, and a finding. `now`: from a report."""
    found = []
    for name in dict.fromkeys((*planned, *now)):
        before = planned.get(name)
        after = contract_of_host(now[name]) if name in now else None
        if before != after:
            words = (_said(before, after), _said(after, before))
            found.append((name, findings.PLAN_DIFFERS(planned=words[0], now=words[1])))
    return found


def _said(this: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> str:
    """The part of one plan that the other plan lacks."""
    if this is None:
        return "not in the plan"
    other = other or {}
    steps = [one_line(step) for step in this["steps"] if step not in other.get("steps", ())]
    if steps:
        return "; ".join(steps)
    if this["status"] != other.get("status"):
        return str(this["status"])
    differing = [name for name in this if name != "steps" and this[name] != other.get(name)]
    return f"the same steps with other {' and '.join(differing)}" if differing else "no such step"
