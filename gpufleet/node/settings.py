"""The settings of all roles of a host, out of its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.findings import settings as findings
from gpufleet.core.load_settings import load_role, unknown_keys
from gpufleet.driver.settings import DriverSettings
from gpufleet.exporter.settings import ExporterSettings
from gpufleet.gpu_stack.settings import ROLES
from gpufleet.toolkit.settings import ToolkitSettings


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The settings of one host, one model per role."""

    driver: DriverSettings
    toolkit: ToolkitSettings
    exporter: ExporterSettings


def load_settings(data: Mapping[str, Any]) -> tuple[NodeSettings | None, list[Finding]]:
    """The typed settings in `data`, or None and every reason why they cannot be used."""
    problems = unknown_keys(data, ROLES)
    driver = load_role(DriverSettings, data, problems)
    toolkit = load_role(ToolkitSettings, data, problems)
    exporter = load_role(ExporterSettings, data, problems)
    if driver:
        problems += _contradictions(driver)
    if problems or driver is None or toolkit is None or exporter is None:
        return None, problems
    return NodeSettings(driver, toolkit, exporter), []


def _contradictions(driver: DriverSettings) -> list[Finding]:
    if driver.branch and driver.version and not driver.version.startswith(driver.branch + "."):
        return [
            findings.CONTRADICTION(
                first=f'driver_branch = "{driver.branch}"',
                second=f'driver_version = "{driver.version}"',
                problem=f"{driver.version} is not of branch {driver.branch}",
            )
        ]
    return []
