"""The roles of a cluster, in installation order."""

from __future__ import annotations

from importlib import import_module

from gpufleet.gpu_stack.operations.stack import Stack

from .monitoring.install import install_exporter, install_prometheus, install_rest

device_plugin = import_module("gpufleet.roles.device-plugin.install")
gpu_operator = import_module("gpufleet.roles.gpu-operator.install")


def apply_roles(stack: Stack) -> None:
    """Prometheus, then GPUs and their metrics, then their consumers."""
    install_prometheus(stack)
    if stack.uses_operator:
        gpu_operator.install(stack)
    else:
        device_plugin.install(stack)
    install_exporter(stack)
    install_rest(stack)
