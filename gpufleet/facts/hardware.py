"""Kernel, devices and modules, from the sections of gather.sh."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gpufleet.facts.model import (
    NVIDIA_VENDOR,
    DkmsModule,
    Kernel,
    LoadedModule,
    ModuleOnDisk,
    PciDevice,
)
from gpufleet.facts.sections import records

_DKMS = re.compile(
    r"(?P<name>[^,/:\s]+)(?:/|, *)(?P<version>[^,/:\s]+)"
    r"(?:, *(?P<kernel>[^,:\s]+), *(?P<arch>[^,:\s]+))? *: *(?P<state>[a-z]+)"
)
_LIBRARY = re.compile(r"libnvidia-ml\.so\.(\d+(?:\.\d+)+)$")


def version_order(version: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key: numbers in a version or a kernel release compare as numbers."""
    parts = re.findall(r"\d+|[a-zA-Z]+", version)
    return tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts)


def parse_kernel(lines: Sequence[str]) -> tuple[Kernel, str]:
    """The kernel, and the host's name."""
    hostname = release = architecture = ""
    installed: list[str] = []
    buildable: list[str] = []
    secure_boot: bool | None = None
    for word, rest in records(lines):
        if word == "uname":
            hostname, release, architecture = rest.split()
        elif word == "installed":
            headers, _, name = rest.partition(" ")
            installed.append(name)
            if headers == "yes":
                buildable.append(name)
        elif word == "secureboot":
            # An EFI variable: four bytes of attributes, then the value.
            values = rest.split()
            secure_boot = values[4] == "1" if len(values) > 4 else None
    if not release:
        raise ValueError("uname printed nothing")
    kernel = Kernel(
        release=release,
        architecture=architecture,
        headers=release in buildable,
        installed=tuple(sorted(installed, key=version_order)),
        secure_boot=secure_boot,
        buildable=tuple(sorted(buildable, key=version_order)),
    )
    return kernel, hostname


def parse_pci(lines: Sequence[str]) -> tuple[PciDevice, ...]:
    """NVIDIA's devices, by slot."""
    devices = []
    for line in filter(str.strip, lines):
        slot, device, pci_class, driver = line.split()
        devices.append(
            PciDevice(
                slot=slot,
                vendor=NVIDIA_VENDOR,
                device=int(device, 16),
                pci_class=int(pci_class, 16),
                driver=None if driver == "-" else driver,
            )
        )
    return tuple(sorted(devices, key=lambda device: device.slot))


def parse_modules(lines: Sequence[str]) -> dict[str, LoadedModule]:
    """Loaded modules: lines of /proc/modules, then one `module` line per /sys/module entry."""
    references: dict[str, int] = {}
    versions: dict[str, str] = {}
    for word, rest in records(lines):
        if word != "module":
            references[word] = int(rest.split()[1])
            continue
        name, count, *version = rest.split()
        # /sys counts afresh whenever it is read, so it is preferred to /proc/modules.
        references[name] = int(count) if count != "-" else references.get(name, 0)
        versions[name] = " ".join(version)
    return {
        name: LoadedModule(name, versions.get(name) or None, count)
        for name, count in sorted(references.items())
    }


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


def parse_library(lines: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """The version that the loader takes, and all versions there are, oldest first."""
    versions: set[str] = set()
    used: str | None = None
    for word, path in records(lines):
        version = library_version(path)
        if version is None:
            continue
        versions.add(version)
        if word == "used":
            used = used or version
    ordered = tuple(sorted(versions, key=version_order))
    return used or (ordered[-1] if ordered else None), ordered


def parse_dkms(lines: Iterable[str]) -> tuple[DkmsModule, ...]:
    """`dkms status`, of dkms 2 (`nvidia, 535.1, …`) and dkms 3 (`nvidia/535.1, …`)."""
    modules = []
    for line in lines:
        match = _DKMS.match(line.strip())
        if match:
            modules.append(
                DkmsModule(match["name"], match["version"], match["kernel"] or "", match["state"])
            )
    return tuple(modules)
