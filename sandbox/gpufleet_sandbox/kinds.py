"""The kinds of host of a sandbox."""

from __future__ import annotations

from dataclasses import dataclass

NVIDIA = 0x10DE
GPU_CLASS = 0x030200
BRIDGE_CLASS = 0x068000


@dataclass(frozen=True, slots=True)
class Device:
    """A device on the simulated PCI bus; numbers as in `lspci -nn`."""

    slot: str
    device: int
    subsystem: int
    pci_class: int = GPU_CLASS
    vendor: int = NVIDIA

    @property
    def is_nvidia(self) -> bool:
        return self.vendor == NVIDIA


@dataclass(frozen=True, slots=True)
class HostKind:
    """One kind of host. `next_kernel`: the kernel that the fault new-kernel installs.

    `user`: the SSH user, root or admin (with sudo).
    """

    name: str
    summary: str
    image: str
    kernel: str = ""
    next_kernel: str = ""
    devices: tuple[Device, ...] = ()
    archive: str = ""  # folder of the distribution's archive on the mirror
    driver_branch: str = ""  # in inventories/sandbox.py
    efi: bool = True
    user: str = "admin"

    @property
    def is_rpm(self) -> bool:
        return self.image == "el7"


A100 = (
    Device("0000:17:00.0", 0x20B2, 0x1463),
    Device("0000:65:00.0", 0x20B2, 0x1463),
)
H100 = tuple(
    Device(f"0000:{bus:02x}:00.0", 0x2330, 0x16C1)
    for bus in (0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF)
)
NVSWITCH = tuple(
    Device(f"0000:{bus:02x}:00.0", 0x22A3, 0x1796, BRIDGE_CLASS) for bus in range(5, 9)
)
# On-board graphics, as servers have it; not from NVIDIA.
BOARD = Device("0000:02:00.0", 0x2000, 0x2000, 0x030000, vendor=0x1A03)

UBUNTU2204 = {
    "image": "ubuntu2204",
    "kernel": "5.15.0-122-generic",
    "next_kernel": "5.15.0-124-generic",
    "archive": "ubuntu2204",
}

_KINDS = (
    HostKind(
        name="ubuntu2204",
        summary="Ubuntu 22.04, docker, 2 x A100",
        devices=(BOARD, *A100),
        driver_branch="580",
        **UBUNTU2204,  # type: ignore[arg-type]
    ),
    HostKind(
        name="ubuntu2404",
        summary="Ubuntu 24.04, containerd, 1 x H100, nouveau in the kernel",
        image="ubuntu2404",
        kernel="6.8.0-45-generic",
        next_kernel="6.8.0-47-generic",
        devices=(BOARD, H100[0]),
        archive="ubuntu2404",
        driver_branch="580",
        user="root",
    ),
    HostKind(
        name="debian12",
        summary="Debian 12, docker and containerd, 1 x L40S",
        image="debian12",
        kernel="6.1.0-99-amd64",
        next_kernel="6.1.0-100-amd64",
        devices=(BOARD, Device("0000:3b:00.0", 0x26B9, 0x1851)),
        archive="debian12",
        driver_branch="580",
    ),
    HostKind(
        name="el7",
        summary="CentOS 7.9, docker, 1 x T4, BIOS",
        image="el7",
        kernel="3.10.0-1160.119.1.el7.x86_64",
        next_kernel="3.10.0-1160.125.1.el7.x86_64",
        devices=(BOARD, Device("0000:3b:00.0", 0x1EB8, 0x12A2)),
        archive="el7",
        driver_branch="550",
        efi=False,
    ),
    HostKind(
        name="nogpu",
        summary="Ubuntu 22.04, docker, no GPU",
        devices=(BOARD,),
        user="root",
        **UBUNTU2204,  # type: ignore[arg-type]
    ),
    HostKind(
        name="nvswitch",
        summary="Ubuntu 22.04, docker, 8 x H100 and 4 NVSwitches",
        devices=(BOARD, *H100, *NVSWITCH),
        driver_branch="580",
        **UBUNTU2204,  # type: ignore[arg-type]
    ),
    HostKind(name="mirror", summary="the package mirror", image="mirror"),
)
KINDS = {kind.name: kind for kind in _KINDS}
MIRROR = "mirror"
GPU_KINDS = tuple(name for name in KINDS if name != MIRROR)
