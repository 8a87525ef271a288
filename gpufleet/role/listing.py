"""The roles of a node, out of their rooms."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from gpufleet.core.node_roles import NODE_ROLES
from gpufleet.core.settings import RoleSettings
from gpufleet.host.settings import HostSettings
from gpufleet.role.protocol import AnyRole, Role


@lru_cache(maxsize=1)
def node_roles() -> tuple[AnyRole, ...]:
    """Every role, in the order in which they run."""
    roles = []
    for name in NODE_ROLES:
        role = import_module(f"gpufleet.{name}.role").ROLE
        assert isinstance(role, Role)
        roles.append(role)
    return tuple(roles)


def node_settings() -> tuple[type[RoleSettings], ...]:
    """Settings of a host and of each role, without importing the roles' plans."""
    models = []
    for name in NODE_ROLES:
        found = vars(import_module(f"gpufleet.{name}.settings")).values()
        models += [
            each
            for each in found
            if isinstance(each, type)
            and issubclass(each, RoleSettings)
            and each is not RoleSettings
            and each.prefix == f"{name}_"
        ]
    return (HostSettings, *models)
