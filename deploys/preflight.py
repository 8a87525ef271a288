"""Findings and the plan of every host and cluster; nothing is changed."""

from gpufleet.host.boundary import one_host
from gpufleet.node.operations.preview import preview
from roles.cluster import apply_roles

with one_host():  # what goes wrong with one host stops this host alone
    preview(apply_roles)
