"""Preview the changes, with the versions and sizes of each host's repositories. Change nothing."""

from gpufleet.host.boundary import one_host
from gpufleet.node.operations.preview import preview_host
from gpufleet.roles.cluster import apply_roles

with one_host():  # a problem of one host stops only this host
    preview_host(apply_roles, check=True)
