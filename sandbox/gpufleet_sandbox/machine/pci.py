"""The simulated PCI bus: a folder per device, with the files that lspci and udev read."""

from __future__ import annotations

import struct
from pathlib import Path

from gpufleet_sandbox.kinds import Device

# lspci expects three numbers per line, for the six regions, the ROM and the bridge windows.
_NO_REGION = "0x0000000000000000 0x0000000000000000 0x0000000000000000"
_REGIONS = (
    "0x00000000fa000000 0x00000000faffffff 0x0000000000040200",
    "0x0000002000000000 0x0000002fffffffff 0x000000000014220c",
    *[_NO_REGION] * 11,
)


def write_device(bus: Path, device: Device) -> None:
    """Write `bus`/<slot>."""
    folder = bus / device.slot
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in _files(device).items():
        (folder / name).write_text(text + "\n")
    (folder / "config").write_bytes(_config(device))


def _files(device: Device) -> dict[str, str]:
    base, sub, interface = (
        device.pci_class >> 16,
        device.pci_class >> 8 & 255,
        device.pci_class & 255,
    )
    modalias = (
        f"pci:v{device.vendor:08X}d{device.device:08X}"
        f"sv{device.vendor:08X}sd{device.subsystem:08X}bc{base:02X}sc{sub:02X}i{interface:02X}"
    )
    uevent = (
        f"PCI_CLASS={device.pci_class:X}\nPCI_ID={device.vendor:04X}:{device.device:04X}\n"
        f"PCI_SUBSYS_ID={device.vendor:04X}:{device.subsystem:04X}\n"
        f"PCI_SLOT_NAME={device.slot}\nMODALIAS={modalias}"
    )
    return {
        "vendor": f"0x{device.vendor:04x}",
        "device": f"0x{device.device:04x}",
        "class": f"0x{device.pci_class:06x}",
        "subsystem_vendor": f"0x{device.vendor:04x}",
        "subsystem_device": f"0x{device.subsystem:04x}",
        "revision": "0xa1",
        "irq": "16",
        "enable": "1",
        "numa_node": "0",
        "local_cpulist": "0-1",
        "power_state": "D0",
        "modalias": modalias,
        "uevent": uevent,
        "resource": "\n".join(_REGIONS),
    }


def _config(device: Device) -> bytes:
    """The first 256 bytes of configuration space, without capabilities."""
    space = bytearray(256)
    struct.pack_into("<HHHH", space, 0x00, device.vendor, device.device, 0x0406, 0x0010)
    space[0x08] = 0xA1
    space[0x09:0x0C] = device.pci_class.to_bytes(3, "little")
    struct.pack_into("<HH", space, 0x2C, device.vendor, device.subsystem)
    space[0x3C:0x3E] = b"\x10\x01"
    return bytes(space)
