"""Images of the GPU stack on a kubeadm cluster of sandbox hosts: Prometheus and all around it.

They are built from their Go modules, under the names that their charts ask for. Grafana is not
among them: it is more than a Go program.
"""

from gpufleet_sandbox.stack.build import build_stack, stack_images
from gpufleet_sandbox.stack.data import monitoring_data

__all__ = ["build_stack", "monitoring_data", "stack_images"]
