"""The host of a deploy: checks settings, gathers facts once, makes the plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyinfra import host, state

from gpufleet.core.findings import Finding
from gpufleet.core.findings.settings import MISSPELT_GROUP
from gpufleet.core.inventory import is_cluster, misspelt_cluster_group
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import EMPTY_RECORD, HostRecord
from gpufleet.host import findings as access
from gpufleet.host import lock as host_lock
from gpufleet.host.asking import host_arguments
from gpufleet.host.facts import read_facts
from gpufleet.node.catalog import load_catalog
from gpufleet.node.described import described_facts
from gpufleet.node.host_checks import check_record, unfinished_upgrade
from gpufleet.node.impact import impact_of
from gpufleet.node.operations.place import beside_plane, place_in_run
from gpufleet.node.operations.preflights import PreflightHost, own_preflights
from gpufleet.node.plan import (
    NodePlan,
    describe_plan,
    plan_again,
    plan_node,
    steps_that_need_driver,
)
from gpufleet.node.settings import NodeSettings, load_node_settings
from gpufleet.packages.operations.locks import wait_before_planning, without_lock_effects
from gpufleet.packages.operations.logins import node_logins
from gpufleet.role.listing import node_roles
from gpufleet.role.result import RoleResult
from gpufleet.run.report import HostReport
from gpufleet.run.reporting import RunReport

BROKEN_PASSWORD = "_sudo_password has a line break, where sudo stops reading"


@dataclass(slots=True)
class RunNode:
    """One host during a run."""

    name: str
    settings: NodeSettings
    facts: NodeFacts
    plan: NodePlan
    report: HostReport
    record: HostRecord = EMPTY_RECORD  # the current record on the host
    driver: Callable[[], str | None] = lambda: None  # version to load, as far as known
    reboot: str | None = None  # why a reboot is needed, once known
    prepared: bool = False  # an earlier process fetched this transaction's lists and packages

    @property
    def has_work(self) -> bool:
        """True if a role applies to the host, or it has a fault. Without a GPU, few roles apply."""
        return bool(self.plan.wanted or self.plan.faults.all)

    @property
    def may_reboot(self) -> bool:
        """True if the settings allow a reboot and the host is not the controller itself."""
        return self.settings.host.reboot == "if_needed" and not self.facts.controller

    @property
    def waits_for_reboot(self) -> bool:
        """True if only a reboot can load the installed driver, and none is allowed."""
        return bool(self.reboot) and not self.may_reboot

    @property
    def driver_version(self) -> str | None:
        """Version of the loaded module, or None if a reboot must load it."""
        return None if self.waits_for_reboot else self.driver()

    def learn(self, facts: NodeFacts) -> list[Finding]:
        """Plan the later steps with newer facts; returns findings that must stop the host now."""
        self.facts = facts
        self.plan = plan_again(self.plan, self.settings, facts)
        new = [each for each in self.plan.all_findings if each not in self.report.findings]
        self.report.findings += new
        return [finding for finding in new if finding.blocks]

    def replan(self, plan: NodePlan) -> None:
        """Report another plan for the same facts."""
        self.plan = plan
        self.report.plan = describe_plan(plan)
        self.report.plan["impact"] = impact_of(plan, may_reboot=self.may_reboot).as_json()
        _fill_versions(self.report, plan, self.facts)

    def note(self, result: RoleResult) -> None:
        """Add a role's results to the report, without a version that is only planned."""
        if state.is_executing:
            self.report.seen[result.entry.role] = result.version
            kept = [each for each in self.report.findings if each.code not in result.solved]
            self.report.findings[:] = kept
            if self.waits_for_reboot:
                self.report.left = steps_that_need_driver(self.plan)
        self.report.runtimes |= result.runtimes
        noted = self.report
        noted.needs += [need for need in result.needs if need not in noted.needs]
        noted.findings += [each for each in result.findings if each not in noted.findings]


def current_node(*, wait_until_idle: bool = True, preflights: bool = True) -> RunNode | None:
    """The host of this deploy, or None if a blocker stops it; other hosts continue.

    All errors in a host's settings are reported at once, before any host is changed.
    `wait_until_idle`: wait for another run, and for a package manager whose transaction makes the
    host look broken, then gather again. This delays all hosts, because pyinfra plans every host
    before the first step. A mere lock is therefore left to the steps, which wait on their host.
    `preflights`: the preflights of the user's repository may also stop it, and an unfinished
    upgrade is reported.
    """
    known = settings_and_facts()
    if known is None:
        return None
    settings, facts = known
    report = RunReport.of(state)
    part = report.host(host.name)
    logins, problems = node_logins(login_files(settings))
    if problems:
        report.block(host, problems)
        return None
    place = place_in_run(state, host, settings, facts)
    plan = plan_node(settings, facts, load_catalog(), int(time.time()), logins, place)
    own = [*blockers_of_user(facts), *unfinished_upgrade(facts)] if preflights else ()
    plan = replace(plan, findings=(*plan.findings, *own))
    if wait_until_idle and is_misleading(facts, plan) and not plan.converged(facts.loaded_driver):
        _fill_versions(part, plan, facts)
        known = facts_once_idle(settings, plan.all_findings)
        if known is None:
            return None
        settings, facts = known
        plan = plan_node(settings, facts, load_catalog(), int(time.time()), logins, place)
        plan = replace(plan, findings=(*plan.findings, *own))
    node = RunNode(host.name, settings, facts, plan, part, record=facts.provenance)
    node.driver = lambda: plan.context.driver if plan.context else facts.loaded_driver
    _fill(part, node)
    beside = beside_plane(state, host, plan, settings, facts)
    for name, problems in beside.items():
        if problems:
            report.block(state.inventory.get_host(name), problems)
    if plan.blockers or beside.get(host.name):
        report.block(host, [])
        return None
    if wait_until_idle:
        host_lock.arm_lock(host, facts)
    return node


def blockers_of_user(facts: NodeFacts) -> list[Finding]:
    """Blockers from the preflights of the user's repository, for the host of this deploy."""
    groups = tuple(host.groups)

    def described_host() -> PreflightHost:
        described = described_facts(facts, load_catalog())
        return PreflightHost(host.name, groups, host.data.dict(), described)

    return own_preflights(described_host)


def is_busy(facts: NodeFacts) -> bool:
    """True if another run or a package manager is changing this host."""
    return facts.busy or bool(facts.lock_holder)


def is_misleading(facts: NodeFacts, plan: NodePlan) -> bool:
    """True if the plan may rest on a state that lasts only as long as another transaction.

    Example: apt holds its lock and has the driver unpacked, so the plan is to repair it.
    """
    described = (part.role.describe(part.plan) for part in plan.wanted)
    repairs = any(each.get("action") == "repair" for each in described)
    half_done = bool(facts.broken or plan.blockers or repairs)
    return facts.busy or (bool(facts.lock_holder) and half_done)


def facts_once_idle(
    settings: NodeSettings, found: Sequence[Finding] = ()
) -> tuple[NodeSettings, NodeFacts] | None:
    """Settings and facts once nothing else changes the host. After the time limit, report the lock
    with the part of `found` that it does not explain, and return None."""
    problem = wait_before_planning(host, settings.host.lock_timeout)
    known = None if problem else settings_and_facts()
    if problem:
        RunReport.of(state).block(host, [*without_lock_effects(found), problem])
    elif known is None:
        RunReport.of(state).block(host, [*found])
    return known


def settings_and_facts() -> tuple[NodeSettings, NodeFacts] | None:
    """Settings and facts of the host of this deploy, or None if a blocker stops it.

    A cluster of the inventory is not a node: the machine that reaches it is not changed.
    """
    report = RunReport.of(state)
    if is_cluster(host.groups):
        report.left_out.add(host.name)
        return None
    part = report.host(host.name)
    data = host.data.dict()
    if meant := misspelt_cluster_group(host.groups, data):
        report.block(host, [MISSPELT_GROUP(name=meant)])
        return None
    settings, problems = load_node_settings(data, host.inventory.get_override_data())
    if settings is None:
        report.block(host, problems)
        return None
    how = host_arguments(host)
    if unfit := unfit_password(how):
        report.block(host, [unfit])
        return None
    began = time.monotonic()
    facts = read_facts(host, further_files(settings), watched_ports(settings), how)
    part.seconds += time.monotonic() - began
    if isinstance(facts, Finding):
        report.block(host, [facts])
        return None
    if problems := check_record(facts) if facts.privileged else [access.NOT_ROOT()]:
        report.block(host, problems)
        return None
    return settings, facts


def unfit_password(how: Mapping[str, Any]) -> Finding | None:
    """A finding if commands cannot run on a host with its password for sudo or su."""
    if how.get("_su_user") and how.get("_su_password"):
        return access.SU_PASSWORD()
    if "\n" in (how.get("_sudo_password") or ""):
        return access.PRIVILEGES_REFUSED(cause=BROKEN_PASSWORD)
    return None


def login_files(settings: NodeSettings) -> dict[str, tuple[str, str | None]]:
    """By role: the setting with the path of a login file, and the file."""
    files = {role.name: role.logins(settings.of(role)) for role in node_roles()}
    return {name: named for name, named in files.items() if named}


def further_files(settings: NodeSettings) -> tuple[str, ...]:
    """Files that the settings name and the facts must include."""
    return tuple(path for role in node_roles() for path in role.paths(settings.of(role)))


def watched_ports(settings: NodeSettings) -> tuple[int, ...]:
    """Ports whose listeners the facts must include."""
    return tuple(port for role in node_roles() for port in role.ports(settings.of(role)))


def _fill(part: HostReport, node: RunNode) -> None:
    plan = node.plan
    part.findings += plan.all_findings
    node.replan(plan)
    part.examined = True
    for each in plan.wanted:
        part.runtimes |= each.role.runtimes(each.plan, node.facts)


def _fill_versions(part: HostReport, plan: NodePlan, facts: NodeFacts) -> None:
    """Put versions into the report early: the run may end while it waits for another one. A host
    that lost its GPUs has no plan for them, and keeps what is installed."""
    part.roles = {role.name: {} for role in node_roles()}
    left = [role for role in node_roles() if role.needs_gpu and not facts.gpus]
    for role in left:
        if version := role.installed(facts, load_catalog()):
            part.roles[role.name] = {"before": version, "after": version}
    for each in plan.wanted:
        role = each.role
        before, after = role.versions(each.plan, facts.provenance.entry(role.entry))
        part.roles[role.name] = {"before": before, "after": after}
