"""`gpufleet doctor --fix`: shows the safe fixes of a check, asks, runs them, and judges again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import click

from gpufleet.cli.diagnosis import note_finding, read_fleet
from gpufleet.cli.reading import read_clusters, read_hosts_and_clusters
from gpufleet.core.console import result_console
from gpufleet.core.inventory import exact_limit
from gpufleet.core.stopped import Stopped
from gpufleet.doctor.cluster_links import ReadCluster
from gpufleet.doctor.fix import PlannedFix, plan_fixes
from gpufleet.doctor.fix_text import fix_question, fixed_lines, show_fix_plan
from gpufleet.doctor.fleet import ReadFleet
from gpufleet.doctor.models import DoctorCheck, JudgedFleet
from gpufleet.doctor.operations.hosts import HostFixes
from gpufleet.doctor.plugin_pods import DeadPod
from gpufleet.doctor.table import all_checks


def fix_inventory(
    inventory: str, limit: Sequence[str], check: DoctorCheck, now: int, *, yes: bool
) -> JudgedFleet:
    """The verdicts after the fixes of a check, which are shown and confirmed first."""
    fleet = read_fleet(inventory, limit)
    before = fleet.judge(all_checks(), now)
    facts = {host.name: host.facts for host in fleet.hosts}
    plan = plan_fixes(check, before, facts, fleet.read)
    show_fix_plan(result_console(), plan)
    if not plan.fixes:
        return before
    if not yes:
        click.confirm(fix_question(plan), abort=True, err=True)
    fleet = _fixed_clusters(_fixed_hosts(fleet, plan.fixes), plan.fixes)
    after = fleet.judge(all_checks(), now)
    for line in fixed_lines(plan, before, after):
        click.echo(line)
    return after


def _fixed_hosts(fleet: ReadFleet, fixes: Sequence[PlannedFix]) -> ReadFleet:
    """The fleet after the fixes of hosts, which are read again. Prints why a fix failed."""
    own = HostFixes(each for each in fixes if each.pod is None)
    if not own.names:
        return fleet
    limit = [exact_limit(name) for name in own.names]
    hosts, _ = read_hosts_and_clusters(fleet.inventory, limit, health=True, before=own)
    for name, finding in own.failed.items():
        note_finding(name, finding)
    read = {host.name: host for host in hosts}
    return replace(fleet, hosts=[read.get(host.name, host) for host in fleet.hosts])


def _fixed_clusters(fleet: ReadFleet, fixes: Sequence[PlannedFix]) -> ReadFleet:
    """The fleet after the fixes in clusters, which are read again."""
    pods: dict[str, list[DeadPod]] = defaultdict(list)
    for fix in fixes:
        pods[fix.name] += [fix.pod] if fix.pod else []
    pods = {name: own for name, own in pods.items() if own}
    if not pods:
        return fleet
    read = {**fleet.read, **_restarted(fleet, pods)}
    clusters = {**fleet.clusters, **read_clusters(fleet.inventory, list(pods))}
    return replace(fleet, clusters=clusters, read=read)


def _restarted(fleet: ReadFleet, pods: Mapping[str, Sequence[DeadPod]]) -> dict[str, ReadCluster]:
    """Restart dead pods, and read the clusters again. Prints why a restart failed."""
    # Imported here because gevent must replace parts of ssl before a client imports it.
    from gpufleet.doctor.operations.clusters import restart_plugin_pods
    from gpufleet.gpu_stack.operations.accesses import access_of

    found = {}
    for target in fleet.targets:
        if target.name not in pods:
            continue
        try:
            found[target.name] = restart_plugin_pods(access_of(target), pods[target.name])
        except Stopped as stopped:
            note_finding(target.name, stopped.findings[0])
    return found
