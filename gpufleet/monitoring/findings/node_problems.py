"""Findings about Node Problem Detector: GF893."""

from __future__ import annotations

from gpufleet.core.findings import warning

DETECTOR_THERE = warning(
    "GF893",
    "Another Node Problem Detector exists",
    "{found} already monitors the nodes and is not managed by gpufleet; it was not changed, and "
    "the GPU checks are not installed.",
    "Add the monitor of `gpufleet catalog node-problems` to it, or remove it and run again.",
)
