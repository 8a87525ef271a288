"""Parses kernel, devices and modules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpufleet.core.entries import Modules
from gpufleet.core.versions import version_order
from gpufleet.facts.gpu import Board, GpuState, Listed
from gpufleet.facts.model import DkmsModule, Kernel, ModuleOnDisk, PciDevice
from gpufleet.facts.sections import split_records

_DKMS = re.compile(
    r"(?P<name>[^,/:\s]+)(?:/|, *)(?P<version>[^,/:\s]+)"
    r"(?:, *(?P<kernel>[^,:\s]+), *(?P<arch>[^,:\s]+))? *: *(?P<state>[a-z]+)"
)
_NO_LINK = "63"  # lanes, six bits: a device that is gone reads as all ones
_TAKEN = "taken "
_MIG_DEVICE = re.compile(r"\s+MIG (\S+)")  # "  MIG 1g.10gb     Device  0: (UUID: MIG-...)"
_BOARD = re.compile(r"GPU \d+: (.*?)(?: \(UUID: [^)]*\))?$")
_STATE = "state "
_MANAGER = "manager"
_MINOR = re.compile(
    r"minor /proc/driver/nvidia/gpus/([^/]+)/information:Device Minor:\s*(\d{1,4})$"
)
_LISTED = re.compile(rf"GPU \d|{_MIG_DEVICE.pattern}|{_STATE}|minor |{_MANAGER}$")
_DETAIL = "NVML library version: "  # follows the error of a mismatch
_TIMED_OUT = ("124", "137")  # exit codes of timeout
STATE_FIELDS = 13  # values that the query of smi.sh prints for a GPU
_LIBRARY = re.compile(r"libnvidia-ml\.so\.(\d+(?:\.\d+)+)$")


def parse_kernel(lines: Sequence[str]) -> Kernel:
    """The running kernel."""
    release = architecture = ""
    buildable: list[str] = []
    installed: set[str] = set()
    secure_boot: bool | None = None
    for word, rest in split_records(lines):
        if word == "uname":
            _, release, architecture = rest.split()
        elif word == "installed":
            headers, _, name = rest.partition(" ")
            installed.add(name)
            if headers == "yes":
                buildable.append(name)
        elif word == "secureboot":
            # An EFI variable: four bytes of attributes, then the value.
            values = rest.split()
            secure_boot = values[4] == "1" if len(values) > 4 else None
        elif word == "unvalidated" and secure_boot:
            secure_boot = rest.split()[4:5] != ["1"]
    if not release:
        raise ValueError("uname printed nothing")
    return Kernel(release, architecture, release in buildable, secure_boot, release in installed)


def parse_pci(lines: Sequence[str]) -> tuple[PciDevice, ...]:
    """NVIDIA's devices, by slot."""
    devices = []
    for line in filter(str.strip, lines):
        if line.startswith(_TAKEN):
            continue
        slot, device, pci_class, driver, *width = line.split()
        devices.append(
            PciDevice(
                slot=slot,
                device=int(device, 16),
                pci_class=int(pci_class, 16),
                driver=None if driver == "-" else driver,
                answers=width != [_NO_LINK],
            )
        )
    return tuple(sorted(devices, key=lambda device: device.slot))


def parse_taken(lines: Sequence[str]) -> tuple[str, ...]:
    """Slots of the GPUs that the driver knows, even if they left the bus."""
    slots = (line.removeprefix(_TAKEN) for line in lines if line.startswith(_TAKEN))
    return tuple(sorted(slot.strip().lower() for slot in slots))


def parse_smi(lines: Sequence[str]) -> Listed | None:
    """The GPUs that nvidia-smi lists, or None if it was not run."""
    said = [line for line in lines if line.strip()]
    if not said:
        return None
    code = said[-1].removeprefix("exit ")
    texts = [line.strip() for line in said[1:-1] if not _LISTED.match(line)]
    texts = [text for text in texts if not text.startswith(_DETAIL)]
    if code == "0":
        error = ""
    elif not code.isdecimal() or code in _TIMED_OUT:
        error = "it did not answer within 60 s"
    else:
        error = texts[-1] if texts else f"it ended with status {code}"
    boards: list[Board] = []
    for line in said:
        if line.startswith("GPU "):
            board = _BOARD.match(line)
            boards.append(Board(board[1] if board else ""))
        elif boards and (device := _MIG_DEVICE.match(line)):
            boards[-1] = replace(boards[-1], devices=(*boards[-1].devices, device[1]))
    devices = sum(len(board.devices) for board in boards)
    asked = (line.removeprefix(_STATE) for line in said if line.startswith(_STATE))
    minors = {match[1].lower(): int(match[2]) for line in said if (match := _MINOR.match(line))}
    states = tuple(
        replace(state, minor=minors.get(state.slot)) for state in _parse_states(asked, boards)
    )
    return Listed(len(boards), error, devices, tuple(boards), states, _MANAGER in said)


def _parse_states(lines: Iterable[str], boards: Sequence[Board]) -> Iterable[GpuState]:
    """The answers to the query of smi.sh. `boards`: the GPUs of the list, by index."""
    for line in lines:
        values = [value.strip() for value in line.split(",")]
        if len(values) != STATE_FIELDS or not values[0].isdecimal():
            continue
        index, bus, mig, pending_mig, *numbers, mode, ecc, pending_ecc = values
        power, default, least, most, clock, memory_clock = map(_number, numbers)
        yield GpuState(
            slot=bus.lower()[-len("0000:00:00.0") :],
            mig=_mode(mig),
            pending_mig=_mode(pending_mig),
            devices=boards[int(index)].devices if int(index) < len(boards) else (),
            power=power,
            default_power=default,
            least_power=least,
            most_power=most,
            most_clock=clock,
            most_memory_clock=memory_clock,
            compute_mode=mode if mode.replace("_", "").isalpha() else "",
            ecc=_mode(ecc),
            pending_ecc=_mode(pending_ecc),
        )


def _mode(text: str) -> bool | None:
    return {"Enabled": True, "Disabled": False}.get(text)


def _number(text: str) -> float | None:
    """A number of nvidia-smi, or None for [N/A] and other texts."""
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text) else None


def parse_modules(lines: Sequence[str]) -> dict[str, str | None]:
    """The version of each loaded module, or None for a module without a version.

    Lines of /proc/modules, then one `module` line per /sys/module entry.
    """
    versions: dict[str, str | None] = {}
    for word, rest in split_records(lines):
        if word == "module":
            name, _, *version = rest.split()
            versions[name] = " ".join(version) or None
        else:
            versions.setdefault(word, None)
    return versions


def parse_flavour(lines: Sequence[str]) -> Modules | None:
    """The flavour of the loaded nvidia module, or None if unknown.

    Lines of /proc/modules end with the taint flags of a module: P stands for proprietary.
    """
    taints = (
        re.search(r"\((\w+)\)$", rest) for word, rest in split_records(lines) if word == "nvidia"
    )
    flags = next(filter(None, taints), None)
    return None if flags is None else "proprietary" if "P" in flags[1] else "open"


def parse_modinfo(lines: Sequence[str]) -> ModuleOnDisk | None:
    """The first module that modinfo describes, if it found any."""
    found: dict[str, str] = {}
    for line in filter(str.strip, lines):
        key, _, value = line.partition(":")
        if key in found:
            break
        found[key] = value.strip()
    if not found:
        return None
    return ModuleOnDisk(
        version=found.get("version", ""),
        license=found.get("license", ""),
        path=found.get("filename", ""),
        signer=found.get("signer", ""),
    )


def library_version(path: str) -> str | None:
    """The version in the name of a libnvidia-ml.so file."""
    match = _LIBRARY.search(path)
    return match.group(1) if match else None


def parse_library(lines: Sequence[str]) -> str | None:
    """The version that the loader uses, or else the newest one."""
    found = [(word, library_version(path)) for word, path in split_records(lines)]
    used = [version for word, version in found if version and word == "used"]
    versions = [version for _, version in found if version]
    return next(iter(used), None) or max(versions, key=version_order, default=None)


def parse_dkms(lines: Iterable[str]) -> tuple[DkmsModule, ...]:
    """`dkms status`, of dkms 2 (`nvidia, 535.1, …`) and dkms 3 (`nvidia/535.1, …`)."""
    matches = (_DKMS.match(line.strip()) for line in lines)
    return tuple(
        DkmsModule(match["name"], match["version"], match["kernel"] or "", match["state"])
        for match in matches
        if match
    )
