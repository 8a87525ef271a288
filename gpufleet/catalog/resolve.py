"""The resolvers: pure functions from the catalog, a host and settings to a choice and findings."""

from gpufleet.catalog.driver import resolve_driver
from gpufleet.catalog.toolkit import resolve_toolkit

__all__ = ["resolve_driver", "resolve_toolkit"]
