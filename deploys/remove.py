"""Takes away what gpufleet installed on a host, by the host's record, and nothing else."""

from gpufleet.host.boundary import one_host
from gpufleet.node.operations.removal import leaving_node
from gpufleet.roles.removal.remove import remove

with one_host():  # what goes wrong with one host stops this host alone
    node = leaving_node()  # GPU work or containers that would lose their runtime stop it
    if node:
        remove(node)
