"""What the user wants: typed settings, read from pyinfra's host data."""

from gpufleet.settings.driver import DriverSettings
from gpufleet.settings.exporter import ExporterSettings
from gpufleet.settings.load import NodeSettings, load_settings
from gpufleet.settings.toolkit import ToolkitSettings

__all__ = ["DriverSettings", "ExporterSettings", "NodeSettings", "ToolkitSettings", "load_settings"]
