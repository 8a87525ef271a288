"""As preflight.py; each host asks its package repositories, too. Change nothing."""

from gpufleet.host.boundary import one_host
from gpufleet.node.operations.preview import preview
from gpufleet.roles.cluster import apply_roles

with one_host():  # a problem of one host stops only this host
    preview(apply_roles, check=True)
