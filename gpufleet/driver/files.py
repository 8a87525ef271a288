"""The files that the driver role writes, and the driver's services. Pure."""

from __future__ import annotations

from collections.abc import Collection

from gpufleet.core.render import render_template
from gpufleet.facts.gpu_work import in_containers
from gpufleet.facts.model import NodeFacts, PciDevice, Service
from gpufleet.host.file_write import FileWrite

RIVALS = ("nouveau", "nova", "nova_core", "nova_drm")  # other kernel drivers for the same GPUs
MODPROBE_FILE = "/etc/modprobe.d/gpufleet-nvidia.conf"
DRACUT_FILE = "/etc/dracut.conf.d/gpufleet-nvidia.conf"
MODULES_LOAD_FILE = "/etc/modules-load.d/gpufleet-nvidia.conf"
UNATTENDED_FILE = "/etc/apt/apt.conf.d/52gpufleet-unattended-upgrades"
PERSISTENCE_OVERRIDE = "/etc/systemd/system/nvidia-persistenced.service.d/gpufleet.conf"
PERSISTENCED = "nvidia-persistenced"
TITLE = "driver"  # of its packages, in messages and files
PREFERENCES_FILE = "/etc/apt/preferences.d/gpufleet-nvidia-driver"


def own_gpus(facts: NodeFacts) -> tuple[PciDevice, ...]:
    """The GPUs for this host's driver, without those passed to virtual machines (vfio-pci)."""
    return tuple(gpu for gpu in facts.gpus if gpu.driver in (None, "nvidia", *RIVALS))


def modules_of(name: str) -> tuple[str, ...]:
    """Module names for modprobe, by the main one's name: Debian's packages use other names."""
    return (name, "nvidia_uvm" if name == "nvidia" else f"{name}-uvm")


def wanted_files(
    facts: NodeFacts, modules: tuple[str, ...], *, hold: bool
) -> tuple[FileWrite, ...]:
    """All files except the pins, which need the version in the repository."""
    files = [
        FileWrite(MODPROBE_FILE, render_template("driver/modprobe.conf", modules=RIVALS)),
        FileWrite(MODULES_LOAD_FILE, render_template("driver/modules-load.conf", modules=modules)),
    ]
    apt = facts.package_manager == "apt"
    if not apt or "dracut" in facts.packages:  # images of clouds lack /etc/modprobe.d
        dracut = render_template("driver/dracut.conf", path=MODPROBE_FILE)
        files.insert(0, FileWrite(DRACUT_FILE, dracut))
    if apt and hold:
        files.append(FileWrite(UNATTENDED_FILE, render_template("driver/unattended-upgrades")))
    return tuple(files)


def wanted_services(facts: NodeFacts, *, persistence: bool) -> tuple[str, ...]:
    """The services that a host with these GPUs needs."""
    wanted = [PERSISTENCED] if persistence else []
    if facts.nvswitches:
        wanted.append("nvidia-fabricmanager")
    return tuple(wanted)


def services_to_start(wanted: Collection[str], facts: NodeFacts, waits: bool) -> tuple[str, ...]:
    """The wanted services that do not run correctly. `waits`: see `persistence_waits`."""
    there = waits and PERSISTENCE_OVERRIDE in facts.texts
    return tuple(
        name for name in wanted if not _runs(facts, name) and not (there and name == PERSISTENCED)
    )


def running_services(wanted: Collection[str], facts: NodeFacts) -> tuple[str, ...]:
    """The units of the wanted services that run."""
    units = (facts.services.get(f"{name}.service") for name in wanted)
    return tuple(service.name for service in units if service and service.runs)


def writes_override(started: Collection[str], facts: NodeFacts) -> bool:
    """True if starting these services may replace the persistence daemon's command. If its unit is
    already on the host, that unit decides."""
    service = facts.services.get(f"{PERSISTENCED}.service")
    return PERSISTENCED in started and (service is None or _switches_off(service))


def persistence_waits(wanted: Collection[str], facts: NodeFacts, spared: Collection[int]) -> bool:
    """True if the running persistence daemon needs another unit file while containers use GPUs."""
    service = facts.services.get(f"{PERSISTENCED}.service")
    needed = PERSISTENCED in wanted and service and service.runs and _switches_off(service)
    return bool(needed) and in_containers(facts, spared)


def _runs(facts: NodeFacts, name: str) -> bool:
    service = facts.services.get(f"{name}.service")
    return bool(service and service.runs and not _switches_off(service))


def _switches_off(service: Service) -> bool:
    """True if a unit starts the daemon without persistence mode, as Ubuntu's does."""
    return "--no-persistence-mode" in service.exec_start
