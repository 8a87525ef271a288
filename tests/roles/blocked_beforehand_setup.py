"""Shared by the tests of blocked beforehand."""

from __future__ import annotations

from gpufleet.host.boundary import one_host
from gpufleet.node.operations.node import current_node
from gpufleet.roles.node import install_roles


def deploy() -> None:
    """The steps of deploys/gpu_node.py."""
    with one_host():
        node = current_node()
        if node and node.has_work:
            install_roles(node)
