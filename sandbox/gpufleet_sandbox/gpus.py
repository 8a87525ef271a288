"""GPUs of a host by model and number, as in h100:8, instead of those of its kind."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from gpufleet_sandbox.kinds import BOARD, KINDS, Device, HostKind

# PCI device; machine/gpus.txt has what NVML says of it.
MODELS = {
    "a10": 0x2236,
    "a100": 0x20B2,
    "b200": 0x2901,
    "h100": 0x2330,
    "h200": 0x2335,
    "l4": 0x27B8,
    "l40s": 0x26B9,
    "t4": 0x1EB8,
    "v100": 0x1DB6,
}
# A subsystem is the maker's number of a board. If it is unknown, the device is repeated.
SUBSYSTEMS = {each.device: each.subsystem for kind in KINDS.values() for each in kind.devices}
BUSES = (
    0x1B, 0x2A, 0x38, 0x43, 0x52, 0x61, 0x6F, 0x7E, 0x8C, 0x9D, 0xAB, 0xB9, 0xC3, 0xD1, 0xDF, 0xE7,
)  # fmt: skip
MOST = len(BUSES)


@dataclass(frozen=True, slots=True)
class Gpus:
    """`count` GPUs of one model; as text h100:8."""

    model: str
    count: int

    def __str__(self) -> str:
        return f"{self.model}:{self.count}"

    @property
    def devices(self) -> tuple[Device, ...]:
        """Their places on the PCI bus."""
        device = MODELS[self.model]
        subsystem = SUBSYSTEMS.get(device, device)
        return tuple(
            Device(f"0000:{bus:02x}:00.0", device, subsystem) for bus in BUSES[: self.count]
        )


def parse_gpus(text: str) -> Gpus:
    """h100:8, or h100 for one of them. ValueError says what is wrong. Pure."""
    model, _, number = text.strip().lower().partition(":")
    if model not in MODELS:
        raise ValueError(f"{text!r}: the sandbox has the models {', '.join(MODELS)}")
    if not re.fullmatch("[0-9]{1,2}", number or "1") or not 1 <= int(number or 1) <= MOST:
        raise ValueError(f"{text!r}: a node has 1 to {MOST} GPUs, as in {model}:8")
    return Gpus(model, int(number or 1))


def parse_list(text: str) -> tuple[Gpus, ...]:
    """h100:8,a100:4: the GPUs of the first node, of the second. ValueError says what is wrong."""
    return tuple(parse_gpus(part) for part in text.split(","))


def of_node(listed: tuple[Gpus, ...], number: int) -> Gpus:
    """The GPUs of node 0, 1, …; nodes beyond the list have the last ones."""
    return listed[min(number, len(listed) - 1)]


def with_gpus(kind: HostKind, text: str) -> HostKind:
    """A kind of host with other GPUs; "" leaves it its own."""
    if not text:
        return kind
    devices = (BOARD, *parse_gpus(text).devices)
    return replace(kind, devices=devices, summary=f"{kind.image}, {text}")
