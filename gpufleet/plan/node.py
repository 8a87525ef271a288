"""The whole plan of one host: what will be done, why, and what stands in the way. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpufleet.catalog.models import Catalog
from gpufleet.facts.model import NodeFacts
from gpufleet.findings import Finding
from gpufleet.findings import host as findings
from gpufleet.plan.driver import DriverPlan, plan_driver
from gpufleet.plan.preflight import inspect_driver, inspect_host
from gpufleet.plan.toolkit import ToolkitPlan, plan_toolkit
from gpufleet.settings import NodeSettings


@dataclass(frozen=True, slots=True)
class NodePlan:
    """The plan of one host. A role whose plan is None has nothing to do there."""

    driver: DriverPlan | None
    toolkit: ToolkitPlan | None
    findings: tuple[Finding, ...]  # of the host and its driver: a blocker stops everything

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """What stops the host before anything is changed."""
        return tuple(finding for finding in self.findings if finding.blocks)

    @property
    def toolkit_blockers(self) -> tuple[Finding, ...]:
        """What stops the host before the toolkit step; the driver is still looked after."""
        found = self.toolkit.findings if self.toolkit else ()
        return tuple(finding for finding in found if finding.blocks)

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        return self.findings + (self.toolkit.findings if self.toolkit else ())


def plan_node(settings: NodeSettings, facts: NodeFacts, catalog: Catalog, now: int) -> NodePlan:
    """What is to be done on a host. `now`: seconds since 1970 by this machine's clock."""
    if not facts.gpus:
        return NodePlan(None, None, (findings.NO_GPU(),))
    found = inspect_host(facts, now)
    driver = plan_driver(settings.driver, facts, catalog) if settings.driver.enabled else None
    if driver:
        found += [*driver.findings, *inspect_driver(settings.driver, facts, driver)]
    toolkit = plan_toolkit(settings.toolkit, facts, catalog) if settings.toolkit.enabled else None
    return NodePlan(driver, toolkit, tuple(dict.fromkeys(found)))


def describe(plan: NodePlan) -> dict[str, Any]:
    """The plan as data for preflight's JSON: what, from what to what, and why."""
    driver = plan.driver
    return {
        "driver": driver
        and {
            "action": driver.action,
            "before": driver.before,
            "loaded": driver.loaded,
            "target": driver.target or driver.choice.newest_known,
            "branch": driver.choice.branch,
            "modules": driver.choice.modules,
            "packages": list(driver.packages),
            "files": [file.path for file in driver.files],
            "services": list(driver.services),
            "reasons": list(driver.reasons),
        },
        "toolkit": plan.toolkit and plan.toolkit.describe(),
        "findings": [finding.as_dict() for finding in plan.all_findings],
    }
