"""Remove from one cluster what gpufleet installed, in order: last installed first."""

from __future__ import annotations

from gpufleet.gpu_stack.operations import removal as operations
from gpufleet.gpu_stack.operations.removal_deletes import ClusterRemoval
from gpufleet.helm.builder import ADAPTER, DETECTOR, EXPORTER, NFD, OPERATOR, PLUGIN, STACK
from gpufleet.host.operation import role
from gpufleet.kube.operations.boundary import cluster_boundary


@role("Removal")
def remove_stack(removal: ClusterRemoval) -> None:
    """Consumers of metrics, then GPUs as a resource, then Prometheus; what releases leave last."""
    plan = removal.plan
    with cluster_boundary():
        operations.uninstall("Uninstall node-problem-detector", removal, DETECTOR)
        operations.uninstall("Uninstall prometheus-adapter", removal, ADAPTER)
        operations.uninstall("Uninstall dcgm-exporter", removal, EXPORTER)
        operations.uninstall("Uninstall the device plugin", removal, PLUGIN)
        operations.uninstall("Uninstall node-feature-discovery", removal, NFD)
        operations.uninstall("Uninstall the GPU Operator", removal, OPERATOR)
        operations.delete("Delete the RuntimeClass", removal, plan.of_kind("RuntimeClass"))
        operations.unlabel_nodes("Remove the label of the GPU nodes", removal)
        operations.delete("Delete the dashboards", removal, plan.of_kind("ConfigMap"))
        operations.delete("Delete the alert rules", removal, plan.of_kind("PrometheusRule"))
        monitors = plan.of_kind("ServiceMonitor")
        operations.delete("Delete the monitor of the exporter", removal, monitors)
        operations.mark_left("Label what Prometheus' operator leaves behind", removal)
        operations.uninstall("Uninstall Prometheus and Grafana", removal, STACK)
        operations.delete("Delete the Service of kubelets", removal, plan.of_kind("Service"))
        operations.delete("Delete the Secrets", removal, plan.of_kind("Secret"))
        operations.delete_crds("Delete the CRDs without objects", removal)
        operations.delete_namespaces("Delete the empty namespaces", removal)
