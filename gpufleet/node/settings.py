"""The settings of all roles of a host, from its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from gpufleet.core.findings import Finding
from gpufleet.core.load_settings import load_role, unknown_keys
from gpufleet.core.settings import RoleSettings
from gpufleet.gpu_stack.settings import ROLES
from gpufleet.role.listing import node_roles
from gpufleet.role.protocol import HostSettings, Role, SettingsOf


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The settings of one host, one model per role."""

    by_role: Mapping[str, RoleSettings]

    def of(self, role: Role[SettingsOf, Any, Any]) -> SettingsOf:
        """The settings of one role."""
        return cast(SettingsOf, self.by_role[role.name])

    @property
    def host(self) -> HostSettings:
        """The settings for the whole host, which the first role has."""
        return cast(HostSettings, self.by_role[node_roles()[0].name])


def load_settings(data: Mapping[str, Any]) -> tuple[NodeSettings | None, list[Finding]]:
    """The typed settings in `data`, or None and all errors."""
    problems = unknown_keys(data, ROLES)
    loaded = {role: load_role(role.settings, data, problems) for role in node_roles()}
    by_role = {role.name: settings for role, settings in loaded.items() if settings}
    for role, settings in loaded.items():
        problems += role.contradictions(settings) if settings else []
    if problems or len(by_role) < len(loaded):
        return None, problems
    return NodeSettings(by_role), []
