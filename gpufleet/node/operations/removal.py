"""Removes gpufleet's installation, by the host's record and notes. Modified files stay."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from pyinfra import host, state
from pyinfra.api import FactBase, StringCommand
from pyinfra.api.operation import OperationMeta

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import is_cluster
from gpufleet.core.node_roles import NODE_ROLES
from gpufleet.facts.files import BACKUPS, HOME
from gpufleet.facts.model import NodeFacts
from gpufleet.host import lock as host_lock
from gpufleet.host.asking import frame_command, framed_answer
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.reading import read_fact
from gpufleet.host.shell import explain_finding, quote_command, script_command
from gpufleet.node import findings
from gpufleet.node.catalog import load_catalog
from gpufleet.node.operations import provenance
from gpufleet.node.operations.node import facts_once_idle, is_busy, settings_and_facts
from gpufleet.node.operations.place import host_place
from gpufleet.node.removal import RemovalPlan, plan_removal
from gpufleet.node.settings import NodeSettings
from gpufleet.node.unfinished import Unfinished, parse_unfinished
from gpufleet.packages import findings as package_findings
from gpufleet.packages.operations.locks import wait_for_lock
from gpufleet.packages.operations.reading import AddedPackages
from gpufleet.role.listing import node_roles
from gpufleet.role.protocol import AnyRole
from gpufleet.run.report import HostReport
from gpufleet.run.reporting import RunReport


class LeftUnfinished(FactBase[Unfinished]):
    """Notes of unfinished runs in gpufleet's folder."""

    default = Unfinished

    def command(self, home: str, roles: tuple[str, ...]) -> StringCommand:
        return frame_command(script_command("node/unfinished", home, *roles))

    def process(self, output: Iterable[str]) -> Unfinished:
        return parse_unfinished(framed_answer(output) or ())


@dataclass(frozen=True, slots=True)
class RemovalNode:
    """One host from which gpufleet is removed."""

    settings: NodeSettings
    facts: NodeFacts
    plan: RemovalPlan
    report: HostReport


def removal_target(only: AnyRole | None = None) -> RemovalNode | None:
    """The host of this deploy, or None if a blocker stops it or gpufleet installed nothing. `only`:
    the role to remove; all other roles stay."""
    began = time.monotonic()
    known_part = RunReport.of(state).hosts.get(host.name)
    if is_cluster(host.groups) or (known_part and known_part.failed):
        return None
    known = settings_and_facts()
    if known is None:
        return None
    settings, facts = known
    left = _left()
    report = RunReport.of(state)
    part = report.host(host.name)
    part.leaves = True
    place = host_place(state, host, facts)
    plan = plan_removal(settings, facts, load_catalog(), left, only, place)
    _fill_versions(part, plan)
    if is_busy(facts) and plan.owns:
        known = facts_once_idle(settings)
        if known is None:
            return None
        (settings, facts), left = known, _left()
        plan = plan_removal(settings, facts, load_catalog(), left, only, place)
        _fill_versions(part, plan)
    part.findings += plan.findings
    described = plan.describe()
    part.steps.extend(described.pop("steps"))  # after the steps of a cluster with this name
    part.plan |= described
    part.examined = True
    for role, removal in plan.parts:
        part.runtimes |= role.runtimes_left(removal)
    part.seconds = time.monotonic() - began
    if plan.blockers:
        part.runtimes = {}
        part.settle()
        report.block(host, [])
        return None
    host_lock.arm_lock(host, facts)
    return RemovalNode(settings, facts, plan, part) if plan.owns else None


def _fill_versions(part: HostReport, plan: RemovalPlan) -> None:
    """Put versions into the report early: the run may end while it waits for another one."""
    movements = {role: recorded.movement for role, recorded in plan.roles}
    part.roles = {name: movements.get(name, {}) for name in NODE_ROLES}


def _left() -> Unfinished:
    """The state that unfinished runs left on the host."""
    left = read_fact(LeftUnfinished, HOME, tuple(NODE_ROLES))
    for role in left.begun:
        added = read_fact(AddedPackages, f"{HOME}/{role}.before")
        left = left.with_added(role, added)
    return left


@host_operation
def wait_for_packages(node: RemovalNode) -> Commands:
    """
    Wait for the package manager, so that nothing is removed before packages can be removed.

    + node: the host
    """
    if not (node.plan.packages or node.plan.held):
        host.noop("gpufleet installed no package")
        return
    yield wait_for_lock(node.settings.host.lock_timeout)


@host_operation
def remove_packages(node: RemovalNode) -> Commands:
    """
    Release and remove the packages that gpufleet installed. Packages that other ones need stay.

    + node: the host
    """
    plan, manager = node.plan, node.facts.package_manager
    if not (plan.packages or plan.held) or manager is None:
        host.noop("gpufleet installed no package")
        return
    yield wait_for_lock(node.settings.host.lock_timeout)
    if plan.held:
        locked = explain_finding(host.name, package_findings.HOLD_FAILED(what="released"))
        yield script_command("packages/release", manager, locked, *plan.held)
    failed = package_findings.TRANSACTION_FAILED(manager=manager)
    message = explain_finding(host.name, failed)
    yield frame_command(script_command("node/purge", manager, message, *plan.packages))
    _note_gone(node)


@host_operation
def remove_files(plan: RemovalPlan) -> Commands:
    """
    Remove the files that gpufleet wrote, and restore the files that they replaced.

    + plan: the plan of the removal
    """
    pairs = [word for pair in plan.files for word in pair]
    if plan.only:
        pairs += [word for path in plan.written for word in (path, "")]
    which = "listed" if plan.only else "all"
    yield frame_command(script_command("node/remove_files", HOME, which, *pairs))


@host_operation
def remove_record(node: RemovalNode, *steps: OperationMeta) -> Commands:
    """
    Remove the record. Copies of replaced files stay if a changed file stays.

    + node: the host
    + steps: the operations with output about files and packages that stay
    """
    done = [step.stdout_lines for step in steps if step.is_complete()]
    said = [line for lines in done for line in framed_answer(lines) or ()]
    notes = _notes_of(said)
    _note_gone(node)
    why = "it has what gpufleet replaced, and a modified file stays too"
    backups = findings.STAYS_INSTALLED(what=BACKUPS, why=why)
    changed = findings.FILE_CHANGED.code
    if state.is_executing:  # the plan only foresaw what stays
        found = node.report.findings
        node.report.findings = [each for each in found if each != backups and each.code != changed]
    theirs = {changed, *(code for role in node_roles() for code in role.left_by_users)}
    stays = any(finding.code in theirs for finding in (*notes, *node.report.findings))
    notes += [backups] if stays else []
    needs = [need for role, removal in node.plan.parts for need in role.needs_left(removal)]
    if "loaded" in said:
        needs.append("reboot: the nvidia modules are still loaded")
    # without -y, this runs twice: to show the changes and to make them
    node.report.findings += [finding for finding in notes if finding not in node.report.findings]
    node.report.needs += [need for need in needs if need not in node.report.needs]
    if node.plan.only:
        yield from provenance.drop_record(node.facts.provenance, node.plan.only, node.plan.paths)
    elif stays:
        yield quote_command(
            "find", HOME, "-mindepth", "1", "-not", "-path", f"{BACKUPS}*", "-delete"
        )
    else:
        yield quote_command("rm", "-rf", HOME)


def _notes_of(said: list[str]) -> list[Finding]:
    """The findings about files and packages that stay, from the output of the steps."""
    notes = [findings.FILE_CHANGED(path=path) for path in _named("changed ", said)]
    why = "a package source that was modified, and stays too, needs that key"
    notes += [findings.STAYS_INSTALLED(what=path, why=why) for path in _named("needed ", said)]
    if kept := _named("kept ", said):
        why = "other packages depend on what came with gpufleet's"
        notes.append(findings.STAYS_INSTALLED(what=", ".join(kept), why=why))
    return notes


def _note_gone(node: RemovalNode) -> None:
    """Update the versions in the report, except in a dry run, which removes nothing."""
    if state.is_executing:
        gone = {role: recorded.movement["after"] for role, recorded in node.plan.roles}
        node.report.seen.update(gone)


def _named(word: str, said: list[str]) -> list[str]:
    """The rest of each line that begins with `word`."""
    return [line.removeprefix(word) for line in said if line.startswith(word)]
