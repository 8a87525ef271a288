"""Judges the versions that a host has after its plan by the known-bad combinations. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gpufleet.combinations.installed import components_of_packages, installed_components
from gpufleet.combinations.judge import components_after, judge_combinations
from gpufleet.combinations.models import NO_COMPONENTS, Combinations, Components, load_combinations
from gpufleet.core.findings import Finding
from gpufleet.facts.model import NodeFacts

if TYPE_CHECKING:
    from gpufleet.node.plan import RolePart


def judge_node(parts: Sequence[RolePart], facts: NodeFacts) -> list[Finding]:
    """A finding for each known-bad combination that a host has after the run."""
    table = load_combinations()
    installed = installed_components(facts, table)
    return judge_combinations(installed, _wanted(parts, table), table)


def _wanted(parts: Iterable[RolePart], table: Combinations) -> Components:
    """The components that the plan installs, "" for a version that only the repository knows."""
    wanted = NO_COMPONENTS
    for part in parts:
        for each in part.transactions:
            packages = dict.fromkeys(each.packages, each.version or "")
            found = Components(components_of_packages(packages, table))
            wanted = components_after(wanted, found)
        wanted = components_after(wanted, part.role.components(part.plan))
    return wanted
