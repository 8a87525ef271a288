"""The whole plan of one host: what will be done, why, and what stands in the way. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.driver.plan import DriverPlan, plan_driver
from gpufleet.exporter.files import own_pids
from gpufleet.exporter.model import ExporterPlan, Surroundings
from gpufleet.exporter.plan import plan_exporter
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import edited
from gpufleet.host.findings import machine as findings
from gpufleet.node.catalog import Catalog
from gpufleet.node.preflight import inspect_driver, inspect_host
from gpufleet.node.settings import NodeSettings
from gpufleet.packages.archives import NO_ARCHIVES, ArchivesPlan, plan_archives
from gpufleet.packages.logins import NO_LOGINS, NodeLogins, with_login
from gpufleet.packages.repository import RepositoryPlan
from gpufleet.toolkit.plan import ToolkitPlan, plan_toolkit

ASKED_LATER = " (the repository is asked in the run)"  # a plan reads none: that would change it


@dataclass(frozen=True, slots=True)
class NodePlan:
    """The plan of one host. A role whose plan is None has nothing to do there."""

    driver: DriverPlan | None
    toolkit: ToolkitPlan | None
    findings: tuple[Finding, ...]  # of the host and its driver
    archives: ArchivesPlan = NO_ARCHIVES  # that stand in for repositories that are gone
    exporter: ExporterPlan | None = None
    exporter_findings: tuple[Finding, ...] = ()

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """What stops the host before anything is changed, whichever role it is in the way of."""
        return tuple(finding for finding in self.all_findings if finding.blocks)

    def converged(self, loaded: str | None) -> bool:
        """Whether there is nothing to do while the driver `loaded` is loaded."""
        driver = self.driver is None or self.driver.converged
        toolkit = self.toolkit is None or self.toolkit.converged(loaded)
        return driver and toolkit and (self.exporter is None or self.exporter.converged)

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        toolkit = self.toolkit.findings if self.toolkit else ()
        return self.findings + toolkit + self.exporter_findings


def plan_node(
    settings: NodeSettings,
    facts: NodeFacts,
    catalog: Catalog,
    now: int,
    logins: NodeLogins = NO_LOGINS,
) -> NodePlan:
    """What is to be done on a host. `now`: seconds since 1970 by this machine's clock."""
    if not facts.gpus:
        return NodePlan(None, None, (findings.NO_GPU(),))
    found = inspect_host(facts, catalog, now)
    own = own_pids(facts, catalog)
    enabled = settings.driver.enabled
    driver = plan_driver(settings.driver, facts, catalog, own) if enabled else None
    if driver:
        known = with_login(driver.repository, logins.driver, facts)
        driver = replace(driver, repository=known)
        found += [*driver.findings, *inspect_driver(settings.driver, facts, driver)]
    toolkit = plan_toolkit(settings.toolkit, facts, catalog) if settings.toolkit.enabled else None
    if toolkit:
        known = with_login(toolkit.repository, logins.toolkit, facts)
        toolkit = replace(toolkit, repository=known)
    archives = plan_archives(
        settings.driver, facts, catalog, _lacking(driver, toolkit), logins.driver
    )
    found += archives.findings
    around = _surroundings(settings, facts, catalog, driver, toolkit)
    exporter, told = plan_exporter(settings.exporter, facts, catalog, around)
    found += _edits(driver, toolkit, archives, exporter, facts)
    return NodePlan(driver, toolkit, tuple(dict.fromkeys(found)), archives, exporter, told)


def _edits(
    driver: DriverPlan | None,
    toolkit: ToolkitPlan | None,
    archives: ArchivesPlan,
    exporter: ExporterPlan | None,
    facts: NodeFacts,
) -> list[Finding]:
    """One finding for each file that this run replaces and that was edited on the host."""
    files = [
        *archives.files,
        *(driver.files if driver else ()),
        *(exporter.files if exporter else ()),
    ]
    for role in (driver, toolkit):
        if role and role.repository.needed and role.repository.source:
            files.append(role.repository.source)
    return [findings.FILE_EDITED(file=path) for path in edited(files, facts)]


def _surroundings(
    settings: NodeSettings,
    facts: NodeFacts,
    catalog: Catalog,
    driver: DriverPlan | None,
    toolkit: ToolkitPlan | None,
) -> Surroundings:
    """What the driver and the toolkit leave for the exporter."""
    version = driver.target if driver else facts.loaded_driver
    branch = driver.choice.branch if driver else (version or "").split(".")[0]
    repository: RepositoryPlan | None = None
    if driver and driver.choice.source == "nvidia":
        repository = driver.repository
    elif driver is None and settings.exporter.enabled:
        known = plan_driver(settings.driver, facts, catalog).repository
        repository = None if known.needed or known.repository is None else known
    return Surroundings(
        branch=int(branch) if branch.isdigit() else None,
        driver=version,
        repository=repository,
        docker=_undockered(facts, toolkit),
    )


def _undockered(facts: NodeFacts, toolkit: ToolkitPlan | None) -> str:
    """Why docker cannot run a container with GPUs; "" where it can, once the toolkit is done."""
    if "docker" not in facts.runtimes:
        return "docker is not installed"
    served = toolkit is not None and any(r.key == "docker" and r.managed for r in toolkit.runtimes)
    config = facts.files.get(facts.runtimes["docker"].config_path)
    if served or (config and '"nvidia"' in (config.content or "")):
        return ""
    return "docker does not get the runtime nvidia"


def _lacking(driver: DriverPlan | None, toolkit: ToolkitPlan | None) -> tuple[str, ...] | None:
    """What the driver needs and the host does not have; None where no package is installed."""
    if driver and driver.changes_packages:
        return driver.prerequisites
    return () if toolkit and toolkit.changes_packages else None


def steps(plan: NodePlan) -> list[str]:
    """What would be done, a sentence each; nothing for a converged host."""
    archives = [f"repositories: write {file.path}" for file in plan.archives.files]
    exporter = _exporter_steps(plan.exporter)
    return [*archives, *_driver_steps(plan.driver), *_toolkit_steps(plan), *exporter]


def _driver_steps(plan: DriverPlan | None) -> list[str]:
    if plan is None:
        return []
    target = f"{plan.target}{ASKED_LATER}" if plan.target else _newest(plan)
    modules = f"{plan.choice.modules} modules"
    done = {
        f"trust the repository {_name(plan.repository)}": plan.repository.needed,
        f"install {', '.join(plan.prerequisites)}": plan.changes_packages and plan.prerequisites,
        f"{plan.action} the driver: {target}, {modules}, {len(plan.packages)} packages": (
            plan.changes_packages
        ),
        f"write {', '.join(file.path for file in plan.files)}": plan.files,
        "hold the driver packages": plan.hold,
        "rebuild the initramfs": plan.initramfs,
        "unload the old modules": plan.stale_module and (plan.load or plan.changes_packages),
        "load the modules": plan.load or plan.changes_packages,
        f"start {', '.join(plan.services)}": plan.services,
    }
    return [f"driver: {step}" for step, needed in done.items() if needed]


def _newest(plan: DriverPlan) -> str:
    """The version of a branch, of which this side of the run knows what the catalog has."""
    known = plan.choice.newest_known
    told = f"; the newest known to the catalog is {known}" if known else ""
    return f"the newest of branch {plan.choice.branch}{ASKED_LATER}{told}"


def _toolkit_steps(node: NodePlan) -> list[str]:
    plan = node.toolkit
    if plan is None:
        return []
    driver = node.driver.target or node.driver.choice.branch if node.driver else None
    done = {
        f"trust the repository {_name(plan.repository)}": plan.repository.needed,
        f"{plan.action} the toolkit: {plan.target}{ASKED_LATER}": plan.changes_packages,
        "hold the toolkit packages": plan.hold,
        "make the CDI spec": plan.cdi.stale(driver),
    }
    for runtime in plan.runtimes:
        done[f"write {runtime.config}"] = runtime.change is not None
        done |= {f"clean {change.path}": True for change in runtime.others}
        done[f"{runtime.activation} {runtime.unit}"] = runtime.activation != "none"
    return [f"toolkit: {step}" for step, needed in done.items() if needed]


def _exporter_steps(plan: ExporterPlan | None) -> list[str]:
    if plan is None:
        return []
    done = {
        f"install {', '.join(family.names)} at {family.prefix}": family.needed
        for family in plan.packages
    }
    done |= {
        "hold the exporter's packages": bool(plan.hold),
        f"write {', '.join(file.path for file in plan.files)}": bool(plan.files),
        f"stop {', '.join(plan.retire)}": bool(plan.retire),
        f"start {', '.join(plan.units)} on {plan.address}": not plan.converged,
    }
    return [f"exporter: {step}" for step, needed in done.items() if needed]


def _name(plan: RepositoryPlan) -> str:
    return plan.repository.name if plan.repository else ""


def describe(plan: NodePlan) -> dict[str, Any]:
    """The plan as data for preflight's JSON: what, from what to what, and why."""
    driver = plan.driver
    return {
        "steps": steps(plan),
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
        "exporter": plan.exporter and plan.exporter.describe(),
        "findings": [finding.as_dict() for finding in plan.all_findings],
    }
