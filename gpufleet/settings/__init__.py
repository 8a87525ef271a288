"""What the user wants: typed settings, read from pyinfra's host data."""

from gpufleet.settings.driver import DriverSettings
from gpufleet.settings.exporter import ExporterSettings
from gpufleet.settings.load import (
    ClusterSettings,
    NodeSettings,
    load_cluster_settings,
    load_settings,
)
from gpufleet.settings.toolkit import ToolkitSettings

__all__ = [
    "ClusterSettings",
    "DriverSettings",
    "ExporterSettings",
    "NodeSettings",
    "ToolkitSettings",
    "load_cluster_settings",
    "load_settings",
]
