"""Remove what gpufleet installed on hosts and clusters, and nothing else."""

from gpufleet.gpu_stack.operations.removal import current_removal
from gpufleet.host.boundary import one_host
from gpufleet.node.operations.removal import removal_target
from gpufleet.roles.removal.cluster import remove_stack
from gpufleet.roles.removal.remove import remove

with one_host():  # a problem of one host or cluster stops only that one
    stack = current_removal()  # pods with GPUs stop it
    if stack:
        remove_stack(stack)
    node = removal_target()  # GPU work, or containers that need the nvidia runtime, stop it
    if node:
        remove(node)
