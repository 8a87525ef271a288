"""Reports the steps that the deploys would take on a host; changes nothing."""

from __future__ import annotations

from collections.abc import Callable

from pyinfra import host, logger, state

from gpufleet.core.inventory import CLUSTERS, is_cluster
from gpufleet.core.stopped import Stopped
from gpufleet.gpu_stack.operations.stack import Stack, current_stack
from gpufleet.host.files import show_diff
from gpufleet.node.operations.faults import as_blockers, unaccepted_faults
from gpufleet.node.operations.node import RunNode, current_node
from gpufleet.packages import findings
from gpufleet.packages.operations.lookup import look_up
from gpufleet.run.reporting import RunReport


def preview_host(roles_of_clusters: Callable[[Stack], None], *, check: bool = False) -> None:
    """Report the planned steps for the host of this deploy, as a node, a cluster or both. `check`:
    the host asks its package repositories for versions and sizes.

    A cluster's roles run as in its deploy, but their operations only report their changes. The
    cluster is read without a lock; charts are downloaded into this machine's cache.
    """
    report = RunReport.of(state)
    report.plan_only = True
    if not is_cluster(host.groups):
        node = current_node(wait_until_idle=False)  # reports what deploys/gpu_node.py would do
        if node and check:
            ask_repositories(node)
        if node:
            show_diff(node.facts, node.plan.files)
            fail_for_faults(node)
    stack = current_stack(preview=True) if CLUSTERS in host.groups else None
    if stack is None:
        return
    roles_of_clusters(stack)
    if stack.run.blocked and not stack.run.report.failed:
        report.block(host, [])


def fail_for_faults(node: RunNode) -> None:
    """Fail a host with faults but without steps, as a run does. With steps, it only shows them."""
    left = unaccepted_faults(node.plan.faults.left)
    if left and not node.report.steps:
        found = node.report.findings
        found[:] = [each for each in found if each not in left]
        RunReport.of(state).block(host, as_blockers(left))


def ask_repositories(node: RunNode) -> None:
    """Complete the plan from the repositories. Raises Stopped for an error that ends the run."""
    wanted = node.plan.transactions
    if not wanted:
        return
    report = RunReport.of(state).host(host.name)
    if node.facts.lock_holder:
        problem = f"{node.facts.lock_holder} holds the lock"
        report.findings.append(findings.NOT_ASKED(problem=problem))
        return
    logger.info(f"{host.print_prefix}asking the package repositories")
    try:
        node.replan(node.plan.with_transactions(look_up(wanted, node.plan.sources)))
    except Stopped as stopped:
        if any(finding.blocks for finding in stopped.findings):
            raise
        report.findings += stopped.findings
