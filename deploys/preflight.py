"""Findings and the plan of every host; nothing is changed."""

from gpufleet.operations.node import preview

preview()
