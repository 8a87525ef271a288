"""GPU metrics: Prometheus, Grafana, exporter, autoscaling and node problems."""

from __future__ import annotations

from gpufleet.gpu_stack.operations import stack as operations
from gpufleet.gpu_stack.operations.stack import Stack
from gpufleet.helm.builder import EXPORTER, STACK
from gpufleet.host.operation import host_role
from gpufleet.kube.operations import objects
from gpufleet.monitoring import operations as alertmanager


@host_role("Monitoring")
def install_prometheus(stack: Stack) -> None:
    """Apply the plan of kube-prometheus-stack: the exporter's monitor needs its CRDs."""
    operations.ensure_password(
        "Create Grafana's password",
        stack.run.cluster.api,
        stack.plan.secret,
        stack.plan.grafana_user,
    )
    alertmanager.ensure_config(
        "Configure Alertmanager's receivers", stack.run.cluster.api, stack.plan.receivers
    )
    stack.apply(STACK)
    if not stack.run.report.failed:
        objects.apply_objects("Apply the alert rules", stack.run.cluster.api, stack.plan.alerts)
        objects.apply_objects("Apply the dashboards", stack.run.cluster.api, stack.plan.dashboards)


@host_role("Monitoring")
def install_exporter(stack: Stack) -> None:
    """Apply the plan of dcgm-exporter: one pod on every node with GPUs.

    Its further objects are created first, so that a failed release leaves neither pods without
    their list nor exporters that are not scraped. Lists of earlier revisions stay for `helm
    rollback`.
    """
    plan, api = stack.plan, stack.run.cluster.api
    if stack.run.report.failed:
        return
    objects.apply_objects("Apply the list of counters", api, plan.counters, objects.NEEDED)
    monitor = plan.exporter_monitor
    objects.apply_objects("Apply the exporter's monitor", api, monitor, objects.NEEDED)
    stack.apply(EXPORTER)
    if not stack.run.report.failed:
        objects.apply_objects("Remove the exporter's monitor", api, monitor, objects.STALE_ACTIONS)


@host_role("Monitoring")
def install_rest(stack: Stack) -> None:
    """Apply the plans of the other charts, which use metrics or watch nodes."""
    stack.apply_rest()
