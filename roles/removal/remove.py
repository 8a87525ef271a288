"""Removes gpufleet's installation from one host, in this order."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Literal

from pyinfra.api.operation import OperationMeta

from gpufleet.host.operation import host_role
from gpufleet.node.operations import removal
from gpufleet.node.operations.removal import RemovalNode
from gpufleet.role.listing import node_roles

FOLDERS = {each.name: f"gpufleet.roles.{each.folder or each.name}" for each in node_roles()}
# a role that has only packages and files needs no steps
STEPS = {
    name: import_module(f"{folder}.remove")
    for name, folder in reversed(FOLDERS.items())
    if find_spec(f"{folder}.remove")
}


@host_role("Removal")
def remove(node: RemovalNode) -> None:
    """Remove only recorded or begun installations from `node`, and the record last."""
    removal.wait_for_packages("Wait for the package manager", node)
    _leave("first", node)
    devices = _leave("before", node)
    purged = removal.remove_packages("Remove the packages that were installed", node)
    cleaned = removal.remove_files("Remove the files that were written", node.plan)
    _leave("after", node)
    removal.remove_record("Remove the record", node, *devices, purged, cleaned)


def _leave(stage: Literal["first", "before", "after"], node: RemovalNode) -> list[OperationMeta]:
    """Run a stage of every removed role, last installed first. Returns the operations that report
    files and packages that stay."""
    leaving = [steps for name, steps in STEPS.items() if node.plan.only in ("", name)]
    done = [getattr(steps, stage)(node) for steps in leaving if hasattr(steps, stage)]
    return [operation for operation in done if operation is not None]
