"""Report findings and the plan of every host and cluster; change nothing."""

from gpufleet.host.boundary import one_host
from gpufleet.node.operations.preview import preview_host
from gpufleet.roles.cluster import apply_roles

with one_host():  # a problem of one host stops only this host
    preview_host(apply_roles)
