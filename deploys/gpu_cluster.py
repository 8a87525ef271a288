"""Kubernetes cluster -> GPU cluster: Prometheus, device plugin or GPU Operator, exporter."""

from gpufleet.gpu_stack.operations.stack import current_stack
from gpufleet.host.boundary import one_host
from gpufleet.roles.cluster import apply_roles

with one_host():  # a problem of one cluster stops only that one
    stack = current_stack()  # settings validated, API read once
    if stack:
        apply_roles(stack)
