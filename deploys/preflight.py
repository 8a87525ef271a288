"""Findings and the plan of every host and cluster; nothing is changed."""

from gpufleet.operations.preflight import preview
from roles.cluster import bring_stack

preview(bring_stack)
