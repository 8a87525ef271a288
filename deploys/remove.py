"""Takes away what gpufleet installed on a host, by the host's record, and nothing else."""

from gpufleet.operations.removal import leaving_node
from roles.removal.remove import remove

node = leaving_node()  # GPU work or containers that would lose their runtime stop this host
if node:
    remove(node)
