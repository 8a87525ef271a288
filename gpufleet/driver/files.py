"""The files that the driver role writes: blacklist, modules at boot, pins. Pure."""

from __future__ import annotations

from gpufleet.core.render import render
from gpufleet.driver.choice import DriverChoice
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.packages.pins import preferences

RIVALS = ("nouveau", "nova", "nova_core", "nova_drm")  # kernel drivers of the same GPUs
MODPROBE_FILE = "/etc/modprobe.d/gpufleet-nvidia.conf"
MODULES_LOAD_FILE = "/etc/modules-load.d/gpufleet-nvidia.conf"
UNATTENDED_FILE = "/etc/apt/apt.conf.d/52gpufleet-unattended-upgrades"
PERSISTENCE_OVERRIDE = "/etc/systemd/system/nvidia-persistenced.service.d/gpufleet.conf"
TITLE = "driver"  # of its packages, in messages and files
PREFERENCES_FILE = "/etc/apt/preferences.d/gpufleet-nvidia-driver"


def modules_of(choice: DriverChoice) -> tuple[str, ...]:
    """Module names for modprobe: Debian's own packages use different ones."""
    name = choice.packages.module
    return (name, "nvidia_uvm" if name == "nvidia" else f"{name}-uvm")


def wanted_files(
    settings: DriverSettings, facts: NodeFacts, modules: tuple[str, ...]
) -> tuple[FileWrite, ...]:
    """All files but the pins, which need the version in the repository."""
    files = [
        FileWrite(MODPROBE_FILE, render("driver/modprobe.conf", modules=RIVALS)),
        FileWrite(MODULES_LOAD_FILE, render("driver/modules-load.conf", modules=modules)),
    ]
    if pinned(settings, facts):
        files.append(FileWrite(UNATTENDED_FILE, render("driver/unattended-upgrades")))
    return tuple(files)


def pinned(settings: DriverSettings, facts: NodeFacts) -> bool:
    """Whether the driver needs apt pins in addition to the hold."""
    return settings.hold and facts.package_manager == "apt"


def pins(packages: tuple[str, ...], version: str) -> FileWrite:
    """The apt preferences that pin `packages` to `version`."""
    return preferences(PREFERENCES_FILE, TITLE, packages, version)
