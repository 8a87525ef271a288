"""The effect of a run on hosts with a driver, toolkit and runtimes that gpufleet did not install,
and the settings with which a run leaves working ones alone. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.text import Text

from gpufleet.core.findings import KNOWN_KINDS, Finding
from gpufleet.core.names import group_by_thing, name_hosts
from gpufleet.driver.action import of_another_source
from gpufleet.driver.findings import host as kinds
from gpufleet.driver.plan import our_packages
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.facts.model import NodeFacts
from gpufleet.node.catalog import Catalog
from gpufleet.node.plan import NodePlan, plan_steps
from gpufleet.node.settings import NodeSettings
from gpufleet.status.models import SeenHost
from gpufleet.status.rows import plan_of_host
from gpufleet.status.text import topic_table
from gpufleet.toolkit.findings.choice import TOOLKIT_KEPT
from gpufleet.toolkit.role import ROLE as TOOLKIT

# findings about a driver that stays only with certain settings
FOREIGN_FINDINGS = {
    kind.code
    for kind in (
        kinds.DRIVER_KEPT,
        kinds.FOREIGN_DRIVER,
        kinds.OTHER_SOURCE,
        kinds.OWNER_UNKNOWN,
        kinds.OPERATOR_DRIVER,
    )
}


@dataclass(frozen=True, slots=True)
class Adoption:
    """One host. `pins`: lines for its inventory. `stays` and `steps`: the results of a run with
    these lines. `blockers`: those that remain."""

    pins: tuple[str, ...]
    stays: tuple[str, ...]
    steps: tuple[str, ...]
    blockers: tuple[Finding, ...]


def adoption_of(host: SeenHost, catalog: Catalog, now: int) -> Adoption | None:
    """The adoption of a host, or None if facts or settings cannot be used. `now`: Unix time."""
    plan, facts = plan_of_host(host, catalog, now), host.facts
    if plan is None or facts is None or host.settings is None:
        return None
    pins: dict[str, Any] = {}
    why = FOREIGN_FINDINGS & _codes(plan)
    if why:
        tried = ((keys, _plan_with(host, keys, catalog, now))
                 for keys in _driver_pins(host.settings, facts))  # fmt: skip
        pins, plan = next((keys, then) for keys, then in tried if _keeps_driver(then, facts))
    toolkit = plan.of(TOOLKIT)
    if toolkit and TOOLKIT_KEPT.code in _codes(plan):
        pins = {**pins, "toolkit_version": toolkit.before}
        why |= {TOOLKIT_KEPT.code}
        plan = _plan_with(host, pins, catalog, now)
    lines = [f"{key} = {json.dumps(value) if value else value}" for key, value in pins.items()]
    reasons = [f"# {code} {KNOWN_KINDS[code].title}" for code in sorted(why)]
    stays = tuple(_stays(plan, facts))
    return Adoption((*reasons, *lines), stays, tuple(plan_steps(plan)), plan.blockers)


def _keeps_driver(plan: NodePlan, facts: NodeFacts) -> bool:
    """True if the run leaves the driver alone, or repairs it from its present source."""
    driver = plan.of(DRIVER)
    if driver is None or driver.action == "none":
        return not FOREIGN_FINDINGS & _codes(plan)
    others = of_another_source(driver.choice, driver.packages, our_packages(facts), facts)
    return driver.action == "repair" and not others and not FOREIGN_FINDINGS & _codes(plan)


def _codes(plan: NodePlan) -> set[str]:
    return {finding.code for finding in plan.all_findings}


def _driver_pins(settings: NodeSettings, facts: NodeFacts) -> Iterator[dict[str, Any]]:
    """Sets of keys that may keep the driver. With the first ones gpufleet manages the driver; with
    the last one it leaves the driver alone."""
    version = facts.loaded_driver or (facts.module_on_disk and facts.module_on_disk.version)
    if version:
        asked = settings.of(DRIVER)
        branch = {"driver_branch": version.split(".")[0]} if asked.branch else {}
        pin = {"driver_version": version, **branch}
        yield pin
        yield {**pin, "driver_source": "nvidia" if asked.source == "distro" else "distro"}
    yield {"driver_enabled": False}


def _plan_with(host: SeenHost, pins: Mapping[str, Any], catalog: Catalog, now: int) -> NodePlan:
    """The plan of the host with these keys in its inventory."""
    assert host.settings
    by_role = dict(host.settings.by_role)
    for key, value in pins.items():
        role, _, name = key.partition("_")
        by_role[role] = by_role[role].model_copy(update={name: value})
    settings = replace(host.settings, by_role=by_role)
    plan = plan_of_host(replace(host, settings=settings), catalog, now)
    assert plan
    return plan


def _stays(plan: NodePlan, facts: NodeFacts) -> Iterator[str]:
    """The installed components that work and that the run does not change, with their versions."""
    driver, toolkit = plan.of(DRIVER), plan.of(TOOLKIT)
    version = driver.before if driver else facts.loaded_driver or facts.library
    if version and (driver is None or driver.action in ("none", "repair")):
        yield f"driver {version}" + ("" if driver else ", not of gpufleet")
    if toolkit and toolkit.action == "none":
        yield f"container toolkit {toolkit.before}"
    changed = {each.key for each in (toolkit.runtimes if toolkit else ())
               if each.changes or each.activation != "none"}  # fmt: skip
    for key, runtime in facts.runtimes.items():
        if key not in changed:
            yield f"{runtime.name} {runtime.version}".strip()


def show_adoptions(console: Console, found: Iterable[tuple[str, Adoption]]) -> None:
    """Print the hosts; hosts with the same result share one entry."""
    for adoption, names in group_by_thing(found).items():
        blockers = [f"{each.code} {KNOWN_KINDS[each.code].title}" for each in adoption.blockers]
        topics = [("add", adoption.pins), ("stays", adoption.stays), ("changes", adoption.steps)]
        console.print(Text(name_hosts(names), "bold"))
        console.print(topic_table([*topics, ("blocks", blockers)], "nothing"))
        console.print()
