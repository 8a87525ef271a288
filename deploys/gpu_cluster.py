"""Kubernetes cluster -> GPU cluster: Prometheus, device plugin or GPU Operator, exporter."""

from importlib import import_module

from gpufleet.operations.stack import current_stack
from roles.monitoring.install import install_adapter, install_exporter, install_prometheus

device_plugin = import_module("roles.device-plugin.install")
gpu_operator = import_module("roles.gpu-operator.install")

stack = current_stack()  # settings checked, the API read once; a blocker stops this cluster alone
if stack:
    install_prometheus(stack)
    if stack.uses_operator:
        gpu_operator.install(stack)
    else:
        device_plugin.install(stack)
        install_exporter(stack)
    install_adapter(stack)
