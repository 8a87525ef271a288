"""Container runtimes: the runtime validates a new configuration before it takes effect."""

from __future__ import annotations

import json
from collections.abc import Callable

from pyinfra import host
from pyinfra.api import StringCommand

from gpufleet.facts.files import BACKUPS, HOME, INCOMING, NOTES
from gpufleet.facts.model import NodeFacts
from gpufleet.host.files import run_stamp, show_diff
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import explain_finding, quote_command, script_command, upload_command
from gpufleet.toolkit.cdi import CdiPlan
from gpufleet.toolkit.findings import runtimes as findings
from gpufleet.toolkit.runtime_model import ConfigChange, RuntimePlan


@host_operation
def configure_runtime(
    facts: NodeFacts, wanted: RuntimePlan | Callable[[], RuntimePlan | None] | None
) -> Commands:
    """
    Write and activate a runtime's new configuration; restore the old one on failure.

    Both are one command, which the host completes even if the controller is killed: otherwise a
    written file would look right to the next run, while the runtime has the old settings.

    + facts: of the host, for the output of --diff
    + wanted: the change and its activation, or a function that returns them when the step runs;
    None without such a runtime
    """
    plan = wanted() if callable(wanted) else wanted
    if plan is None or (not plan.changes and plan.activation == "none"):
        host.noop("the runtime is configured" if plan else "the host has no such runtime")
        return
    show_diff(facts, [change.shown for change in plan.changes])
    mark = run_stamp()
    backups = {change.path: f"{BACKUPS}/{mark}{change.path}" for change in plan.changes}
    if plan.changes:
        yield quote_command("install", "-d", "-m", "700", HOME, INCOMING, BACKUPS, NOTES)
    note = f"{NOTES}/{plan.key}.json" if plan.changes and plan.serves else ""
    if note:  # for a run that ends before its record; a removal stays recorded until it is done
        backups[note] = f"{BACKUPS}/{mark}{note}"
        staged = f"{INCOMING}/{mark}-note"
        text = json.dumps(plan.as_record().as_json(), indent=2, sort_keys=True) + "\n"
        yield upload_command(text.encode(), staged)
        yield script_command("toolkit/note_runtime", staged, note, backups[note])
    noted, steps = (note, backups.get(note, "")), []
    for number, change in enumerate(plan.changes):
        staged = f"{INCOMING}/{mark}-{number}" if change.after is not None else ""
        if change.after is not None:
            yield upload_command(change.after.encode(), staged)
        steps.append(_put(plan, change, staged, backups[change.path], noted))
    if plan.activation != "none":
        down = findings.RUNTIME_DOWN(unit=plan.unit, file=plan.config)
        began = findings.CONTAINERS_BEGAN(unit=plan.unit)
        activate = script_command(
            "toolkit/activate",
            plan.unit,
            plan.activation,
            plan.name,
            plan.socket,
            "nvidia" if plan.serves else "",
            explain_finding(host.name, down),
            explain_finding(host.name, began) if plan.spare else "",
            *(word for pair in backups.items() for word in pair),
        )
        steps.append(activate)
    yield StringCommand(*steps, _separator=" && ")


def _put(
    plan: RuntimePlan, change: ConfigChange, staged: str, backup: str, note: tuple[str, str]
) -> StringCommand:
    """The command that replaces one file by the staged one; "" removes it."""
    return script_command(
        "toolkit/runtime_config",
        change.path,
        staged,
        change.sha256,
        oct(change.mode).removeprefix("0o"),
        backup,
        explain_finding(host.name, findings.CONFIG_MOVED(file=change.path)),
        explain_finding(host.name, findings.PARSER_REFUSES(runtime=plan.name, file=change.path)),
        explain_finding(host.name, findings.NOT_TAKEN_UP(runtime=plan.name, file=change.path)),
        *note,
        change.expected,
        str(len(change.read_back)),
        *change.read_back,
        *(change.validate if change.after is not None else ()),
    )


@host_operation
def describe_devices(
    plan: CdiPlan, driver: Callable[[], str | None], changed: bool = False
) -> Commands:
    """
    Generate the CDI spec for the loaded driver.

    + plan: source of the spec, and whether it is current
    + driver: version that is loaded when the step runs, or None before a reboot
    + changed: the run creates or destroys MIG devices
    """
    version = driver()
    if not plan.stale(version) and not (changed and version and plan.keeper != "none"):
        host.noop(
            "the CDI spec is current" if version else "it is generated once a driver is loaded"
        )
        return
    if plan.keeper == "refresh":
        yield script_command("toolkit/cdi_refresh", plan.path, *plan.units)
    else:
        yield script_command("toolkit/cdi_generate", plan.path, *plan.command)
        if plan.created:  # else there was one before
            yield script_command("packages/note_made", HOME, plan.path, "")
