"""Runs the roles of a node, in the order of `NODE_ROLES` in gpufleet/core/node_roles.py."""

from __future__ import annotations

from importlib import import_module

from gpufleet.node.operations.node import RunNode
from gpufleet.role.listing import node_roles

FOLDERS = [f"gpufleet.roles.{role.folder or role.name}" for role in node_roles()]
STEPS = [import_module(f"{folder}.install") for folder in FOLDERS]


def install_roles(node: RunNode) -> None:
    """Apply the plan of every role to `node`; a disabled role does nothing."""
    for steps in STEPS:
        steps.install(node)
