"""Requires that catalog.d/ of the working directory can be used, before a command does anything."""

from __future__ import annotations

from gpufleet.core.own_catalog import has_own_catalog


def require_own_catalog() -> None:
    """Load every part of the catalog that catalog.d/ can change. Raises Stopped."""
    if has_own_catalog():  # the rest takes its time to load
        from gpufleet.helm.chart_choice import load_charts
        from gpufleet.node.catalog import load_catalog
        from gpufleet.status.support import load_runtimes

        load_catalog()
        load_charts()
        load_runtimes()
