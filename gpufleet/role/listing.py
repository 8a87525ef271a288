"""Finds the roles of a node in their packages."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from gpufleet.core.node_roles import NODE_ROLES
from gpufleet.core.settings import RoleSettings
from gpufleet.host.settings import HostSettings
from gpufleet.role.protocol import AnyRole, Role


@lru_cache(maxsize=1)
def node_roles() -> tuple[AnyRole, ...]:
    """Every role, in the order in which the roles run."""
    roles = []
    for name in NODE_ROLES:
        role = import_module(f"gpufleet.{name}.role").ROLE
        assert isinstance(role, Role)
        roles.append(role)
    return tuple(roles)


def node_settings() -> tuple[type[RoleSettings], ...]:
    """Settings of the host and of each role, without importing the roles' plans."""
    return (HostSettings, *(_settings_of(name) for name in NODE_ROLES))


def _settings_of(name: str) -> type[RoleSettings]:
    """The model in a role's `settings` that has the prefix of its data keys."""
    [model] = [
        each
        for each in vars(import_module(f"gpufleet.{name}.settings")).values()
        if isinstance(each, type)
        and issubclass(each, RoleSettings)
        and each is not RoleSettings
        and each.prefix == f"{name}_"
    ]
    return model
