"""The settings of all roles of a host, from its data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from gpufleet.core.accepted import AcceptedFindings
from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CLUSTERS, NODES_GROUP
from gpufleet.core.load_settings import load_role, unknown_keys
from gpufleet.core.secrets import register_secrets_of
from gpufleet.core.settings import RoleSettings
from gpufleet.gpu_stack.settings import ROLES, load_cluster_settings
from gpufleet.host.settings import HostSettings
from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.role.listing import node_roles
from gpufleet.role.protocol import Role, SettingsOf


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The settings of one host: of the host as a whole, and one model per role."""

    host: HostSettings
    by_role: Mapping[str, RoleSettings]

    def of(self, role: Role[SettingsOf, Any, Any]) -> SettingsOf:
        """The settings of one role."""
        return cast(SettingsOf, self.by_role[role.name])


def load_node_settings(
    data: Mapping[str, Any], given: Collection[str] = ()
) -> tuple[NodeSettings | None, list[Finding]]:
    """The typed settings in `data`, or None and all errors. `given`: as in unknown_keys."""
    register_secrets_of(data)
    problems = unknown_keys(data, ROLES, given)
    host = load_role(HostSettings, data, problems)
    load_role(UpgradeSettings, data, problems)
    load_role(AcceptedFindings, data, problems)
    loaded = {role: load_role(role.settings, data, problems) for role in node_roles()}
    by_role = {role.name: settings for role, settings in loaded.items() if settings}
    for role, settings in loaded.items():
        problems += role.contradictions(settings) if settings else []
    if problems or host is None or len(by_role) < len(loaded):
        return None, problems
    return NodeSettings(host, by_role), []


def settings_problems(
    groups: Collection[str], data: Mapping[str, Any], given: Collection[str] = ()
) -> list[Finding]:
    """Problems in the settings of a host or of a cluster. A host may be in the groups of both.
    `given`: as in unknown_keys."""
    found: list[Finding] = []
    if CLUSTERS not in groups or NODES_GROUP in groups:
        found += load_node_settings(data, given)[1]
    if CLUSTERS in groups:
        found += load_cluster_settings(data, given)[1]
    return list(dict.fromkeys(found))
