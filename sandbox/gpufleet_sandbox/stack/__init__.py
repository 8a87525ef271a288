"""Images of the GPU stack on a kubeadm cluster of sandbox hosts: Prometheus and all around it.

They have the names that their charts ask for; where their programs come
from: docs/how-to/sandbox-clusters.md.
"""

from gpufleet_sandbox.stack.build import build_stack, stack_images
from gpufleet_sandbox.stack.data import monitoring_data

__all__ = ["build_stack", "monitoring_data", "stack_images"]
