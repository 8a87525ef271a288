"""Findings about Node Problem Detector: GF893."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

DETECTOR_THERE = Kind(
    "GF893",
    Severity.WARNING,
    "A Node Problem Detector is there already",
    "{found} looks at the nodes already, and it is not gpufleet's; it was left alone, and the "
    "checks of GPUs are not installed.",
    "Give it the monitor of `gpufleet catalog node-problems`, or remove it and run again.",
)
