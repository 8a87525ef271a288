"""`gpufleet doctor --fix`: shows the safe fixes of a check, asks, runs them, and judges again."""

from __future__ import annotations

from collections.abc import Sequence

import click

from gpufleet.cli.diagnosis import read_fleet
from gpufleet.cli.output import print_note
from gpufleet.cli.reading import read_hosts_and_clusters
from gpufleet.core.console import result_console
from gpufleet.core.inventory import exact_limit
from gpufleet.core.names import count_noun
from gpufleet.core.visible import one_line
from gpufleet.doctor.fix import FixPlan, plan_fixes
from gpufleet.doctor.fix_text import fixed_lines, show_fix_plan
from gpufleet.doctor.fleet import judge_fleet
from gpufleet.doctor.models import DoctorCheck, JudgedFleet
from gpufleet.doctor.operations import HostFixes
from gpufleet.doctor.table import all_checks
from gpufleet.node.catalog import load_catalog
from gpufleet.status.models import SeenHost


def fix_inventory(
    inventory: str, limit: Sequence[str], check: DoctorCheck, now: int, *, yes: bool
) -> JudgedFleet:
    """The verdicts after the fixes of a check, which are shown and confirmed first."""
    catalog = load_catalog()
    hosts, clusters = read_fleet(inventory, limit)
    before = judge_fleet(inventory, hosts, clusters, all_checks(), catalog, now)
    plan = plan_fixes(check, before, {host.name: host.facts for host in hosts})
    show_fix_plan(result_console(), plan)
    if not plan.fixes:
        return before
    if not yes:
        text = f"Run this on {count_noun(len(plan.fixes), 'host')}?"
        click.confirm(text, abort=True, err=True)
    read = {host.name: host for host in run_fixes(inventory, plan)}
    merged = [read.get(host.name, host) for host in hosts]
    after = judge_fleet(inventory, merged, clusters, all_checks(), catalog, now)
    was, now_is = ({each.name: each for each in found.hosts} for found in (before, after))
    for line in fixed_lines(plan, was, now_is):
        click.echo(line)
    return after


def run_fixes(inventory: str, plan: FixPlan) -> list[SeenHost]:
    """Run the fixes of a plan. Returns their hosts, read again; prints why a fix failed."""
    fixes = HostFixes(plan.fixes)
    limit = [exact_limit(fix.name) for fix in plan.fixes]
    hosts, _ = read_hosts_and_clusters(inventory, limit, health=True, before=fixes)
    for name, finding in fixes.failed.items():
        print_note(f"{finding.code} {one_line(name)}: {finding.message}\n  {finding.remedy}")
    return hosts
