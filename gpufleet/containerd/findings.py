"""Findings about containerd on hosts."""

from __future__ import annotations

from gpufleet.core.findings import blocker

TOO_OLD_THERE = blocker(
    "GF990",
    "No package of containerd that is new enough",
    "{offer}; containerd {minimum} or newer is required. Nothing was installed.",
    'Set containerd_install to another source or "auto" for this host, update the mirror of the '
    "repository, or install containerd there.",
    description="The source of containerd_install has no package of containerd for the "
    "distribution, or an old one.",
)
CONTAINERD_IN_USE = blocker(
    "GF993",
    "Containers run in containerd",
    "Containers that are not Kubernetes' run in the containerd that is to be removed. Their "
    "names follow.",
    "Stop them, and run again.",
)
