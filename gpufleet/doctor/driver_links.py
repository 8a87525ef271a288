"""Reads the links of the chain from the packages to the fabric manager. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from gpufleet.core.names import count_noun
from gpufleet.core.visible import one_line
from gpufleet.doctor.models import Link, Verdict
from gpufleet.doctor.units import read_units
from gpufleet.driver.files import MODPROBE_FILE, RIVALS
from gpufleet.facts.files import full_paths
from gpufleet.facts.gpu import LAYOUT_FILE, GpuState, sum_up_devices
from gpufleet.facts.model import NodeFacts, Service

LAYOUT_UNIT = "gpufleet-gpus.service"  # makes the layout at each boot
FABRIC_MANAGER, PERSISTENCED_UNIT = "nvidia-fabricmanager", "nvidia-persistenced.service"
JOINING = ("Not Started", "In Progress")  # states of a GPU that has not joined its fabric


def read_busy(facts: NodeFacts) -> Link:
    """The program that changes the host now."""
    holder = facts.lock_holder or (facts.busy and (facts.run_lock or "another run of gpufleet"))
    if not holder:
        return Link("nothing changes it")
    return Link(holder, f"The host is being changed, and may look unfinished: {holder}.")


def read_disk(facts: NodeFacts) -> Link | None:
    """The file systems that every program of the system writes to."""
    if not facts.free_bytes:
        return None
    full = {path: facts.free_bytes[path] // 1_000_000 for path in full_paths(facts)}
    if not full:
        return Link("has space")
    said = ", ".join(f"{path} has {free} MB free" for path, free in full.items())
    return Link(said, f"The disk is full: {said}. Programs that write there fail.")


def read_packages(facts: NodeFacts) -> Link:
    """A package manager at work leaves packages half installed until it ends."""
    if not facts.broken:
        return Link("in order")
    if facts.lock_holder:
        return Link(f"{facts.broken}, while {facts.lock_holder} works")
    fault = f"A transaction of packages was interrupted: {facts.broken}."
    step = "finish_dpkg" if facts.package_manager == "apt" else "finish_yum"
    return Link(facts.broken, fault, steps=(step,))


def read_pci_bus(facts: NodeFacts) -> Link:
    return Link(f"{len(facts.gpus)} on the PCI bus")


def read_driver(facts: NodeFacts) -> Link:
    module = facts.module_on_disk
    version = facts.loaded_driver or (module.version if module else None) or facts.library
    if version or facts.operator_driver or _in_dkms(facts):
        return Link(version or "installed")
    return Link("none", "No NVIDIA driver is installed: no program can use the GPUs.")


def read_headers(facts: NodeFacts) -> Link | None:
    if not _by_dkms(facts):
        return None
    if facts.kernel.headers or facts.module_on_disk:
        return Link("there" if facts.kernel.headers else "missing, and not needed now")
    kernel = facts.kernel.release
    return Link("missing", f"The headers of the running kernel {kernel} are missing, so DKMS "
                   "cannot build the module.")  # fmt: skip


def read_build(facts: NodeFacts) -> Link | None:
    if facts.operator_driver or not (facts.library or facts.module_on_disk or _in_dkms(facts)):
        return None
    kernel = facts.kernel.release
    if facts.module_on_disk:
        return Link(f"there for {kernel}")
    fault = f"There is no nvidia module for the running kernel {kernel}"
    if "nvidia" not in facts.modules:
        return Link("missing", f"{fault}.")
    return Link("loaded, not on disk", f"{fault} on disk: the loaded one is lost at the next "
                   "reboot.", verdict=Verdict.WARNING)  # fmt: skip


def read_signature(facts: NodeFacts) -> Link | None:
    module = facts.module_on_disk
    if not module or facts.kernel.secure_boot is None:
        return None
    if not facts.kernel.secure_boot:
        return Link("Secure Boot is off")
    if module.signer or "nvidia" in facts.modules:
        return Link(f"Secure Boot is on, signed by {module.signer or 'an enrolled key'}")
    return Link("Secure Boot is on, not signed", "Secure Boot is on, and the nvidia module is "
                   "not signed: the kernel rejects it.")  # fmt: skip


def read_nouveau(facts: NodeFacts) -> Link:
    rivals = {gpu.driver: gpu.slot for gpu in facts.gpus if gpu.driver in RIVALS}
    if not rivals:
        return Link("none")
    names = ", ".join(f"{name} has {slot}" for name, slot in rivals.items())
    prepared = facts.module_on_disk and MODPROBE_FILE in facts.provenance.files
    steps = ("reboot",) if prepared else ()  # an apply has done its part
    return Link(names, f"Another kernel driver has a GPU: {names}.", steps=steps)


def read_loaded(facts: NodeFacts) -> Link:
    if "nvidia" in facts.modules:
        return Link(f"nvidia {facts.loaded_driver or ''}".strip())
    by = " by the GPU Operator's driver container" if facts.operator_driver else ""
    return Link("not loaded", f"The nvidia module is not loaded{by}.")


def read_version(facts: NodeFacts) -> Link | None:
    if facts.loaded_driver is None:
        return None
    module = facts.module_on_disk
    on_disk = f", on disk {module.version}" if module else ""
    library = f", library {facts.library}" if facts.library else ""
    return Link(f"loaded {facts.loaded_driver}{on_disk}{library}")


def read_bound(facts: NodeFacts) -> Link | None:
    if "nvidia" not in facts.modules:
        return None
    bound = [gpu for gpu in facts.gpus if gpu.driver == "nvidia"]
    return Link(f"{len(bound)} of {len(facts.gpus)}")


def read_nodes(facts: NodeFacts) -> Link | None:
    """The first use of a GPU creates its nodes, so a missing node alone is not a fault."""
    bound = [gpu for gpu in facts.gpus if gpu.driver == "nvidia"]
    if not bound or facts.operator_driver:
        return None
    there = [path for path in facts.device_nodes if path.removeprefix("/dev/nvidia").isdigit()]
    read = f"{len(there)} for {len(bound)}"
    if "/dev/nvidiactl" not in facts.device_nodes:
        read += ", without /dev/nvidiactl"
    elif len(there) >= len(bound):
        return Link(read)
    if facts.listed is None or not facts.listed.error:
        return Link(f"{read}, created at the first use")
    return Link(read, "Device nodes of the driver are missing, and nvidia-smi fails: programs "
                   "cannot open the GPUs.")  # fmt: skip


def read_nvml(facts: NodeFacts) -> Link | None:
    if facts.listed is not None:  # finding GF151 says if it is at fault
        return Link(facts.listed.error or f"{facts.listed.gpus} listed")
    error = facts.health.error if facts.health else None
    if error is None:
        return None
    return Link(error or "works", error and f"nvidia-smi fails: {error}.")


def read_readings(facts: NodeFacts) -> Link | None:
    """The readings of nvidia-smi, without which nothing is known of the GPUs."""
    if facts.health is None:
        return None
    if facts.health.error == "":
        return Link(f"{count_noun(len(facts.health.gpus), 'GPU')}")
    loaded = "nvidia" in facts.modules
    why = facts.health.error or ("it is not installed" if loaded else "the driver is not loaded")
    return Link("none", f"nvidia-smi cannot read the GPUs, so their state is not known: {why}.")


def read_log(facts: NodeFacts) -> Link | None:
    """The range of the kernel log. A log with an overwritten start is normal."""
    health = facts.health
    if health is None or "nvidia" not in facts.modules:
        return None
    if health.log_since is None:
        fault = "The kernel log cannot be read, so errors of GPUs (XID) are not known."
        return Link("not readable", fault)
    since = datetime.fromtimestamp(health.log_since, timezone.utc)
    whole = "" if health.log_complete else "; its start was overwritten"
    return Link(f"since {since:%Y-%m-%d %H:%M} UTC{whole}")


def read_persistence(facts: NodeFacts) -> Link | None:
    """The mode that the GPUs have, whoever has set it, or else the unit."""
    modes = [gpu.persistence for gpu in facts.health.gpus] if facts.health else []
    off = modes.count("Disabled")
    if modes and not off and None not in modes:
        return Link(f"on for {count_noun(len(modes), 'GPU')}")
    found = read_units(facts, (PERSISTENCED_UNIT,), "each program waits until its GPU has started")
    if not off or (found and found.fault):
        return found
    fault = f"Persistence mode is off for {count_noun(off, 'GPU')}: each program waits until its "
    return Link("off", f"{fault}GPU has started.", PERSISTENCED_UNIT, Verdict.INFO)


def read_fabric(facts: NodeFacts) -> Link | None:
    """From B200 on, the NVSwitches are no NVIDIA devices: the GPUs report that they wait for it."""
    unit = f"{FABRIC_MANAGER}.service"
    service = facts.services.get(unit)
    waits = any(gpu.fabric_state in JOINING for gpu in facts.health.gpus) if facts.health else False
    if facts.operator_driver or "nvidia" not in facts.modules:
        return None
    if service is None and facts.nvswitches:
        return Link("not installed", "The host has NVSwitches and no fabric manager: CUDA fails "
                       "with error 802.", unit)  # fmt: skip
    if service is None and waits:
        return Link("not installed", "The GPUs wait to join their NVLink fabric, and the host has "
                       "no fabric manager: CUDA fails with error 802. Of GB200 and GB300, it runs "
                       "outside of the host.", unit, Verdict.WARNING)  # fmt: skip
    if service is None or not (facts.nvswitches or waits):
        return None
    return _read_fabric_manager(facts, service)


def _read_fabric_manager(facts: NodeFacts, service: Service) -> Link:
    if service.active != "active":
        return Link(service.active, f"The fabric manager does not run ({service.active}): CUDA "
                       "fails with error 802.", service.name)  # fmt: skip
    versions = fabric_versions(facts)
    if versions and facts.loaded_driver and facts.loaded_driver not in versions:
        other = ", ".join(sorted(versions))
        return Link(f"active, {other}", f"The fabric manager is {other}, the driver "
                       f"{facts.loaded_driver}: they need the same version.",
                       service.name)  # fmt: skip
    return Link(f"active {' '.join(versions)}".strip())


def fabric_versions(facts: NodeFacts) -> set[str]:
    """The versions of the installed packages of the fabric manager."""
    packages = facts.packages.items()
    return {each.upstream for name, each in packages if name.startswith(FABRIC_MANAGER)}


def read_layout(facts: NodeFacts) -> Link | None:
    """The MIG devices of each GPU whose layout gpufleet manages: a boot, a reset and a load of the
    driver take them back."""
    file = facts.files.get(LAYOUT_FILE)
    wanted = dict(_wanted_layouts(file.content or "")) if file else {}
    states = facts.listed.states if facts.listed else ()
    there = {each.slot: _layout_of(each) for each in states if each.mig is not None}
    judged = [slot for slot in wanted if slot in there]
    if not judged:
        return None
    differ = [slot for slot in judged if wanted[slot] != there[slot]]
    read = f"{len(judged) - len(differ)} of {count_noun(len(judged), 'GPU')} as recorded"
    if not differ:
        return Link(read)
    now, recorded = there[differ[0]], one_line(wanted[differ[0]])
    fault = f"The MIG layout of GPU {differ[0]} is {now}, and {LAYOUT_FILE} records {recorded}."
    return Link(read, fault, LAYOUT_UNIT)


def _wanted_layouts(text: str) -> Iterator[tuple[str, str]]:
    """Slot and layout of each GPU of LAYOUT_FILE whose layout is managed."""
    for line in text.splitlines():
        slot, *words = line.split() or [""]
        for layout in (word[len("mig=") :] for word in words if word.startswith("mig=")):
            yield slot, layout if layout == "off" else sum_up_devices(layout.split(","))


def _layout_of(state: GpuState) -> str:
    return sum_up_devices(state.devices) or ("on, without devices" if state.mig else "off")


def _by_dkms(facts: NodeFacts) -> bool:
    """True if DKMS builds the module, or is to: of a driver that was removed from DKMS, the package
    with the source is still there."""
    sources = [name for name in facts.packages if "nvidia" in name and "dkms" in name]
    return _in_dkms(facts) or bool(sources)


def _in_dkms(facts: NodeFacts) -> bool:
    return any(each.name.startswith("nvidia") for each in facts.dkms)
