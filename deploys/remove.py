"""Remove what gpufleet installed on a host, by the host's record, and nothing else."""

from gpufleet.host.boundary import one_host
from gpufleet.node.operations.removal import removal_target
from gpufleet.roles.removal.remove import remove

with one_host():  # a problem of one host stops only this host
    node = removal_target()  # GPU work, or containers that need the nvidia runtime, stop it
    if node:
        remove(node)
