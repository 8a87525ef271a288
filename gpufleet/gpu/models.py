"""Types of mig_profiles.yaml, and the GPUs' layout in the host's record."""

from __future__ import annotations

from datetime import date
from typing import ClassVar

from pydantic import Field

from gpufleet.core.entries import Entry, Sourced, entry_loader
from gpufleet.facts.record import RoleEntry


class Shape(Entry):
    """A kind of MIG instance. `compute` and `memory`: its slices; `most`: instances that fit;
    `starts`: memory slices at which it can begin."""

    compute: int
    memory: int
    most: int
    starts: tuple[int, ...]


class Geometry(Sourced):
    """The shapes of instances that GPUs of one design have. `compute`: slices of the whole GPU."""

    name: str
    compute: int
    shapes: dict[str, Shape]


class MigModel(Sourced):
    """GPU models with the same profiles, by PCI device ids."""

    title: str
    ids: tuple[int, ...]
    geometry: str
    driver: str  # the oldest version that supports MIG on them
    resets: bool  # a change of the MIG mode needs a reset
    profiles: dict[str, str]  # shape -> profile


class MigCatalog(Entry):
    """mig_profiles.yaml"""

    as_of: date
    geometries: tuple[Geometry, ...]
    models: tuple[MigModel, ...]

    def model(self, device: int) -> MigModel | None:
        """The model of a PCI device id, or None if MIG is not known for it."""
        return next((model for model in self.models if device in model.ids), None)

    def geometry(self, model: MigModel) -> Geometry:
        return next(each for each in self.geometries if each.name == model.geometry)

    def shapes(self, model: MigModel) -> dict[str, Shape]:
        """Profile -> shape."""
        shapes = self.geometry(model).shapes
        return {profile: shapes[name] for name, profile in model.profiles.items()}


load_mig_catalog = entry_loader(MigCatalog, "gpu/mig_profiles")


class GpuEntry(RoleEntry):
    """The layout and settings that gpufleet made. `version`: the layout in short."""

    role: ClassVar[str] = "gpu"

    gpus: dict[str, str] = Field(default_factory=dict)  # slot -> words of its line in LAYOUT_FILE
