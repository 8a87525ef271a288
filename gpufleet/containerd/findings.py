"""Findings about containerd on hosts."""

from __future__ import annotations

from gpufleet.core.findings import blocker

SOURCE_MISSING = blocker(
    "GF990",
    "No such package of containerd for this distribution",
    'containerd_install is "{wanted}", which has no containerd {minimum} or newer for this '
    "distribution.",
    'Set containerd_install to "auto" for this host, or install containerd there.',
)
TOO_OLD_THERE = blocker(
    "GF991",
    "containerd in the repository is too old",
    "The repository has {package} {version}; {minimum} or newer is required. Nothing was "
    "installed.",
    'Set containerd_install to "{other}", or update the repository\'s mirror.',
)
CONTAINERD_IN_USE = blocker(
    "GF993",
    "Containers run in containerd",
    "Containers that are not Kubernetes' run in the containerd that is to be removed. Their "
    "names follow.",
    "Stop them, and run again.",
)
