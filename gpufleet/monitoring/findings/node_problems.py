"""Findings about Node Problem Detector: GF893."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

DETECTOR_THERE = Kind(
    "GF893",
    Severity.WARNING,
    "Another Node Problem Detector exists",
    "{found} already monitors the nodes and is not managed by gpufleet; it was not changed, and "
    "the GPU checks are not installed.",
    "Add the monitor of `gpufleet catalog node-problems` to it, or remove it and run again.",
)
