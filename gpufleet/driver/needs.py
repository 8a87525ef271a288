"""Driver requirements of a host's GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpufleet.core.entries import Modules
from gpufleet.driver.catalog import DriverCatalog, Generation, Gpu

BOTH: tuple[Modules, ...] = ("open", "proprietary")


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU model; `generation` is None for an id that is not in the catalog."""

    id: int
    known: Gpu | None
    generation: Generation | None

    @property
    def name(self) -> str:
        """ "Tesla T4"; with several names for its id, the first."""
        return self.known.names[0] if self.known else f"GPU 10de:{self.id:04x}"

    @property
    def title(self) -> str:
        """The display name: "Tesla T4 (Turing)"."""
        return f"{self.name} ({self.generation.name})" if self.generation else self.name

    @property
    def first(self) -> int:
        own = self.known.first if self.known else None
        return own or (self.generation.first if self.generation else None) or 0

    @property
    def last(self) -> int:
        return (self.generation.last if self.generation else None) or 9999

    @property
    def modules(self) -> tuple[Modules, ...]:
        if self.generation is None:
            return BOTH
        return (self.known.modules if self.known else ()) or self.generation.modules

    def takes_branch(self, branch: int) -> bool:
        return self.first <= branch <= self.last

    @property
    def limit(self) -> str:
        """Why a branch may not support it, as a sentence."""
        if self.last < 9999:
            return f"The last branch for it is {self.last}."
        return f"The first branch for it is {self.first}."


def devices_of(catalog: DriverCatalog, ids: Sequence[int]) -> tuple[Device, ...]:
    """The distinct GPU models among PCI device ids, in order of id."""
    return tuple(
        Device(device, catalog.gpu(device), catalog.generation(device))
        for device in sorted(set(ids))
    )


def common_modules(devices: Sequence[Device]) -> tuple[Modules, ...]:
    """The flavours of kernel modules that every GPU can use."""
    return tuple(m for m in BOTH if all(m in device.modules for device in devices))


def names(devices: Sequence[Device]) -> str:
    """The GPUs as a list for a sentence."""
    return ", ".join(device.title for device in devices)
