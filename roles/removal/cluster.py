"""Removes gpufleet from one cluster: releases, last installed first, then objects."""

from __future__ import annotations

from gpufleet.gpu_stack.operations import removal as operations
from gpufleet.gpu_stack.operations.removal import ClusterRemoval
from gpufleet.helm.chart_choice import load_charts
from gpufleet.host.operation import host_role


@host_role("Removal")
def remove_stack(removal: ClusterRemoval) -> None:
    """Objects are deleted last, because releases use them."""
    for name, chart in reversed(load_charts().charts.items()):
        operations.uninstall_release(f"Uninstall {chart.title}", removal, name)
    operations.delete_objects("Delete the objects of gpufleet", removal)
    operations.unlabel_nodes("Remove the label of the GPU nodes", removal)
