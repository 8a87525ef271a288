"""Metrics of GPUs: Prometheus, Grafana, the exporter that they read, and who scales by it."""

from __future__ import annotations

from gpufleet.gpu_stack.operations import stack as operations
from gpufleet.gpu_stack.operations.stack import Stack
from gpufleet.helm.builder import ADAPTER, DETECTOR, EXPORTER, STACK
from gpufleet.host.operation import role
from gpufleet.kube.operations import objects
from gpufleet.monitoring import operations as alertmanager


@role("Monitoring")
def install_prometheus(stack: Stack) -> None:
    """Bring kube-prometheus-stack to its plan: its CRDs are what the exporter's monitor needs."""
    operations.ensure_password(
        "Make a password for Grafana", stack.run.cluster.api, stack.plan.secret
    )
    alertmanager.ensure_config(
        "Tell Alertmanager whom to write", stack.run.cluster.api, stack.plan.receivers
    )
    stack.apply("Install Prometheus and Grafana", STACK)
    if not stack.run.report.failed:
        objects.keep("Write the alerts", stack.run.cluster.api, stack.plan.alerts)
        objects.keep(
            "Load the dashboards into Grafana", stack.run.cluster.api, stack.plan.dashboards
        )


@role("Monitoring")
def install_exporter(stack: Stack) -> None:
    """Bring dcgm-exporter to its plan: one pod on every node with GPUs."""
    stack.apply("Export the metrics of the GPUs", EXPORTER)


@role("Monitoring")
def install_adapter(stack: Stack) -> None:
    """Bring prometheus-adapter to its plan: it gives autoscalers what Prometheus has of GPUs."""
    stack.apply("Give metrics of the GPUs to autoscalers", ADAPTER)


@role("Monitoring")
def install_detector(stack: Stack) -> None:
    """Bring node-problem-detector to its plan: conditions and events of nodes about their GPUs."""
    stack.apply("Look for troubles of GPUs on the nodes", DETECTOR)
