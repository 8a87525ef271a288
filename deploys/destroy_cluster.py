"""Take hosts out of their Kubernetes cluster; driver and container toolkit stay."""

from gpufleet.host.boundary import one_host
from gpufleet.kubernetes.role import ROLE as KUBERNETES
from gpufleet.node.operations.removal import removal_target
from gpufleet.roles.removal.remove import remove

with one_host():  # a problem of one host stops only this host
    node = removal_target(KUBERNETES)
    if node:
        remove(node)
