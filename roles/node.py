"""The roles of a node, in the order in which they run."""

from __future__ import annotations

from importlib import import_module

from gpufleet.node.operations.node import Node
from gpufleet.role.listing import node_roles

FOLDERS = [f"gpufleet.roles.{role.folder or role.name}" for role in node_roles()]
STEPS = [import_module(f"{folder}.install") for folder in FOLDERS]


def install_roles(node: Node) -> None:
    """Bring every role of `node` to its plan; one whose settings ask for nothing does nothing."""
    for steps in STEPS:
        steps.install(node)
