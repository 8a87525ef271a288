"""The CDI specification of one host: its source, and whether it is current. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from gpufleet.core.findings import Finding
from gpufleet.core.versions import version_tuple
from gpufleet.facts.gpu import CdiSpec
from gpufleet.facts.model import NodeFacts
from gpufleet.toolkit.findings import runtimes as found
from gpufleet.toolkit.models import ToolkitCatalog
from gpufleet.toolkit.record import ToolkitEntry
from gpufleet.toolkit.settings import ToolkitSettings

Keeper = Literal["none", "refresh", "generate"]
_OUTPUT = re.compile(r"^NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=[\"']?([^\"'\s]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CdiPlan:
    """`refresh`: the toolkit's own units write the spec; `generate`: gpufleet runs nvidia-ctk.

    The spec names files by the driver's version: it is regenerated after each change of the driver.
    `stale` therefore takes the driver that is loaded after the run.
    """

    keeper: Keeper
    path: str  # of the spec
    units: tuple[str, ...]  # to enable, and restart for a new spec, with `refresh`
    command: tuple[str, ...]  # argv that writes the spec, with `generate`
    enabled: bool  # the units are enabled
    specs: tuple[CdiSpec, ...]  # the specs on the host
    created: bool = False  # gpufleet created the spec, and removes it
    findings: tuple[Finding, ...] = ()

    def stale(self, driver: str | None) -> bool:
        """True if the spec must be generated for the loaded `driver`; it cannot be without one."""
        if self.keeper == "none" or driver is None:
            return False
        spec = next((spec for spec in self.specs if _same(spec.path, self.path)), None)
        return not self.enabled or spec is None or spec.driver != driver


def plan_cdi(
    settings: ToolkitSettings, facts: NodeFacts, catalog: ToolkitCatalog, version: str
) -> CdiPlan:
    """The CDI spec of the host for toolkit `version`."""
    cdi = catalog.toolkit.cdi
    if not settings.cdi:
        return CdiPlan("none", "", (), (), True, facts.cdi_specs)
    systemd = facts.distribution.systemd if facts.distribution else None
    too_old = systemd is not None and systemd.version < cdi.refresh_minimum_systemd
    refresh = version_tuple(version) >= version_tuple(cdi.refresh_since) and not too_old
    named = _OUTPUT.findall(facts.texts.get(cdi.refresh_environment, ""))
    path = [cdi.refresh_output, *named][-1] if refresh else cdi.output
    there = (facts.cdi_specs, _created(facts, path), _duplicates(facts, path))
    if refresh:
        services = [facts.services.get(unit) for unit in cdi.refresh_units]
        enabled = all(service and service.enabled == "enabled" for service in services)
        return CdiPlan("refresh", path, cdi.refresh_units, (), enabled, *there)
    command = ("nvidia-ctk", "cdi", "generate", f"--output={path}")
    return CdiPlan("generate", path, (), command, True, *there)


def _created(facts: NodeFacts, path: str) -> bool:
    """True if gpufleet creates the spec now, or created it in an earlier run."""
    recorded = facts.provenance.entry(ToolkitEntry).cdi
    if recorded.path == path:
        return recorded.created
    return not any(_same(spec.path, path) for spec in facts.cdi_specs)


def _same(one: str, other: str) -> bool:
    """/var/run is a link to /run."""
    return one.removeprefix("/var") == other.removeprefix("/var")


def _duplicates(facts: NodeFacts, path: str) -> tuple[Finding, ...]:
    """Other specs of the same devices, left by another driver; current ones do no harm."""
    others = [
        spec.path
        for spec in facts.cdi_specs
        if spec.driver and spec.driver != facts.loaded_driver and not _same(spec.path, path)
    ]
    return tuple(found.CDI_DUPLICATE(ours=path, other=other) for other in others)
