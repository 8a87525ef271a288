"""Reports what the deploys would do with a host; changes nothing."""

from __future__ import annotations

from collections.abc import Callable

from pyinfra import host, state

from gpufleet.core.inventory import CLUSTERS, is_cluster
from gpufleet.gpu_stack.operations.stack import Stack, current_stack
from gpufleet.host.files import show_diff
from gpufleet.node.operations.node import current_node
from gpufleet.run.reporting import RunReport


def preview(roles_of_clusters: Callable[[Stack], None]) -> None:
    """Report what would be done with the host of this deploy, as a node, a cluster or both.

    A cluster's roles run as in its deploy, and their operations only report what they would do.
    The cluster is read without a lock; charts are downloaded into this machine's cache.
    """
    report = RunReport.of(state)
    report.plan_only = True
    if not is_cluster(host.groups):
        node = current_node(wait_until_idle=False)  # reports what deploys/gpu_node.py would do
        if node:
            show_diff(node.facts, node.plan.files)
    stack = current_stack(preview=True) if CLUSTERS in host.groups else None
    if stack is None:
        return
    roles_of_clusters(stack)
    if stack.run.blocked and not stack.run.report.failed:
        report.block(host, [])
