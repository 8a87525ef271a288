"""Kubernetes cluster -> GPU cluster: Prometheus, device plugin or GPU Operator, exporter."""

from gpufleet.gpu_stack.operations.stack import current_stack
from gpufleet.roles.cluster import apply_roles

stack = current_stack()  # settings validated, API read once; a blocker stops only this cluster
if stack:
    apply_roles(stack)
