"""Decides what `--fix` runs on each host: a safe step, or the reason why there is none. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpufleet.core.visible import one_line
from gpufleet.doctor.chain import LINK_READERS
from gpufleet.doctor.container_links import CDI_SERVICE, service_spec, stale_specs
from gpufleet.doctor.driver_links import FABRIC_MANAGER, fabric_versions
from gpufleet.doctor.export import next_steps, step_command
from gpufleet.doctor.models import (
    CheckOutcome,
    DoctorCheck,
    JudgedFleet,
    NextStep,
    SafeFix,
    SubjectVerdict,
    load_steps,
)
from gpufleet.doctor.table import all_checks
from gpufleet.facts.model import NodeFacts

if TYPE_CHECKING:  # the prolog of a batch system has no use for clusters
    from gpufleet.doctor.cluster_links import ReadCluster
    from gpufleet.doctor.plugin_pods import DeadPod

NOT_WHILE = ("host.busy", "host.upgrade")  # checks that say that something else works on the host


class NoFix(Exception):
    """A failed check has no safe fix on a host. `why`: a sentence; `cause`: the outcome that comes
    first, if another one than that of the check."""

    def __init__(self, why: str, cause: CheckOutcome | None = None) -> None:
        super().__init__(why)
        self.why, self.cause = why, cause


@dataclass(frozen=True, slots=True)
class PlannedFix:
    """A command for one host or cluster, as it is shown. A pod is deleted through the API."""

    name: str
    command: str
    interrupts: str
    seen: str = field(default="", repr=False)  # content of the host's lock when it was judged
    place: str = " (on the host, as root)"
    pod: DeadPod | None = None  # of a cluster, to delete


@dataclass(frozen=True, slots=True)
class RefusedFix:
    """A host or cluster without a safe fix. `step`: the next command for a person."""

    name: str
    why: str
    step: str


@dataclass(frozen=True, slots=True)
class FixPlan:
    """What `--fix` does for one check on the hosts of an inventory."""

    check: str
    fixes: tuple[PlannedFix, ...]
    refused: tuple[RefusedFix, ...]


def fixable_step(check: DoctorCheck) -> tuple[str, NextStep, SafeFix] | None:
    """The first step of a check that has a safe fix, with its id and the fix."""
    steps = [(name, load_steps().steps[name]) for name in check.steps]
    return next(((name, step, step.fix) for name, step in steps if step.fix), None)


def fix_command(result: CheckOutcome, found: SubjectVerdict, inventory: str) -> str:
    """The command that shows the fix of a failed check and asks, "" without one."""
    if result.check not in found.fixable:
        return ""
    command = f"gpufleet doctor {{inventory}} --limit {{host}} --fix {result.check}"
    step = NextStep(does="", command=command, runs_on="controller", interrupts="")
    return step_command(step, inventory, found, result)


def with_fixes(
    found: SubjectVerdict, facts: NodeFacts | None, read: ReadCluster | None
) -> SubjectVerdict:
    """The verdict with the checks that `--fix` can fix on this host or cluster."""
    failed = {each.check for each in found.results if each.verdict.fails}
    fixable = set()
    for check in all_checks():
        if check.id in failed and fixable_step(check):
            with suppress(NoFix):
                _plan_fix(check, found, facts, read)
                fixable.add(check.id)
    return replace(found, fixable=frozenset(fixable))


def plan_fixes(
    check: DoctorCheck,
    judged: JudgedFleet,
    facts: Mapping[str, NodeFacts | None],
    read: Mapping[str, ReadCluster],
) -> FixPlan:
    """What the fix of a check does on each host and cluster on which it fails. `facts`: of the
    hosts; `read`: what the API server of each cluster says."""
    fixes: list[PlannedFix] = []
    refused = []
    for found in judged.every:
        failed = [each for each in found.results if each.check == check.id and each.verdict.fails]
        if not failed:
            continue
        try:
            fixes += _plan_fix(check, found, facts.get(found.name), read.get(found.name))
        except NoFix as no:
            step = _first_step(found, no.cause or failed[0], judged.inventory)
            refused.append(RefusedFix(found.name, no.why, step))
    return FixPlan(check.id, tuple(fixes), tuple(refused))


def _plan_fix(
    check: DoctorCheck, found: SubjectVerdict, facts: NodeFacts | None, read: ReadCluster | None
) -> list[PlannedFix]:
    """The fixes of a failed check on one host or cluster. Raises NoFix."""
    failed = [each for each in found.results if each.check == check.id and each.verdict.fails]
    _require_free(found, failed[0])
    return [_host_fix(check, found.name, facts)] if facts else _pod_fixes(check, found.name, read)


def _first_step(found: SubjectVerdict, result: CheckOutcome, inventory: str) -> str:
    """The first next step as text, "" without one."""
    step = next((step for _, step in next_steps(result)), None)
    if step is None:
        return ""
    place = " (on the host, as root)" if step.runs_on == "host" else ""
    return f"Next{place}: {step_command(step, inventory, found, result)}"


def _require_free(found: SubjectVerdict, failed: CheckOutcome) -> None:
    """Raises NoFix for a failure that follows from another one, and while others work there."""
    for other in found.results:
        if other.check in NOT_WHILE and other.cause:
            raise NoFix(other.cause, other)
        if failed.follows and other.check == failed.follows and other.verdict.fails:
            raise NoFix(f"It follows from {other.check}.", other)


def _host_fix(check: DoctorCheck, host: str, facts: NodeFacts) -> PlannedFix:
    """The fix on one host. Raises NoFix."""
    name, step, fix = _fixable(check)
    command, interrupts = FIXES[name](fix, check.id, facts)
    return PlannedFix(host, command, interrupts or step.interrupts, facts.run_lock)


def _pod_fixes(check: DoctorCheck, cluster: str, read: ReadCluster | None) -> list[PlannedFix]:
    """A fix for each dead pod of a cluster's device plugin. Raises NoFix."""
    if read is None:
        raise NoFix("The pods of the device plugin were not read.")
    if not read.plugin.dead:
        raise NoFix("Every pod of the device plugin is Ready.")
    _, step, fix = _fixable(check)
    access = "".join(f"{_word(each)} " for each in read.access)
    return [
        PlannedFix(
            cluster,
            fix.command.format(access=access, namespace=_word(pod.namespace), pod=_word(pod.name)),
            step.interrupts,
            place="",
            pod=pod,
        )
        for pod in read.plugin.dead
    ]


def _word(text: str) -> str:
    """A text of others as one word of a command to copy."""
    return shlex.quote(one_line(text))


def _fixable(check: DoctorCheck) -> tuple[str, NextStep, SafeFix]:
    there = fixable_step(check)
    assert there, "the command line names no other check"
    return there


def _start_unit(fix: SafeFix, check: str, facts: NodeFacts) -> tuple[str, str]:
    """Start the unit that the check names, unless it is meant to be off. Raises NoFix."""
    link = LINK_READERS[check](facts)
    unit = link.unit if link else ""
    service = facts.services.get(unit)
    if service is None:
        raise NoFix(f"{unit or 'The unit'} is not installed.")
    if unit not in fix.units:
        raise NoFix(f"To start {unit} is not safe without a look at it.")
    if service.active not in ("failed", "inactive"):
        raise NoFix(f"{unit} is {service.active}: a start does not help.")
    if off := {"disabled", "masked"}.intersection((service.enabled, service.load)):
        raise NoFix(f"{unit} is {min(off)}.")
    if service.changed:
        raise NoFix(f"The files of {unit} were changed since systemd read them.")
    if unit.startswith(FABRIC_MANAGER):
        _require_one_version(facts)
    return fix.command.format(unit=unit), fix.units[unit]


def _require_one_version(facts: NodeFacts) -> None:
    """Raises NoFix for a fabric manager of another version than the driver."""
    versions = fabric_versions(facts)
    if facts.loaded_driver not in versions:
        have = ", ".join(sorted(versions)) or "not of a package"
        raise NoFix(f"The fabric manager is {have}, the driver {facts.loaded_driver}.")


def _make_nodes(fix: SafeFix, check: str, facts: NodeFacts) -> tuple[str, str]:
    bound = sum(gpu.driver == "nvidia" for gpu in facts.gpus)
    return fix.command.format(minors=" ".join(f"-c {minor}" for minor in range(bound))), ""


def _refresh_cdi(fix: SafeFix, check: str, facts: NodeFacts) -> tuple[str, str]:
    """Write the missing or stale specification, by the toolkit's service if that keeps it. Raises
    NoFix."""
    kept = service_spec(facts)
    path = next((spec.path for spec in stale_specs(facts)), kept)
    if path and path == kept:
        return fix.service_command.format(unit=CDI_SERVICE), ""
    if path not in fix.paths:
        raise NoFix(f"The program that writes {path or 'the specification'} is not known.")
    return fix.command.format(path=path), ""


FIXES: dict[str, Callable[[SafeFix, str, NodeFacts], tuple[str, str]]] = {
    "refresh_cdi": _refresh_cdi,
    "start_unit": _start_unit,
    "make_nodes": _make_nodes,
}  # step -> its command and what that interrupts, "" if always the same
