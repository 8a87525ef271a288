"""Findings and the plan of every host and cluster; nothing is changed."""

from gpufleet.host.boundary import one_host
from gpufleet.node.operations.preview import preview
from gpufleet.roles.cluster import bring_stack

with one_host():  # what goes wrong with one host stops this host alone
    preview(bring_stack)
