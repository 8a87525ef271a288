"""MIG layouts: how they are written, and whether they fit. A layout is the profiles of a GPU's
instances, the largest first; () is a whole GPU. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from gpufleet.facts.gpu import sum_up_devices
from gpufleet.gpu.models import MigCatalog, MigModel, Shape

Layout = tuple[str, ...]
OFF = "off"
MAX_INSTANCES = 7  # of any GPU; a larger count is a slip
_PART = re.compile(r"[1-9]c\.(?P<whole>[1-9]g\.[\w.+-]+)")  # of a GPU instance: 1c.3g.40gb
_PROFILE = re.compile(r"[1-9]g\.[1-9]\d{0,2}gb(?:[+-][a-z][a-z.]{0,15})?")


def parse_layout(text: str) -> Layout:
    """The layout of a text such as `3g.40gb, 1g.10gb:2` or `off`. Raises ValueError."""
    if text.strip() == OFF:
        return ()
    found: list[str] = []
    for part in text.split(","):
        profile, _, count = part.strip().partition(":")
        if compute := _PART.fullmatch(profile):
            raise ValueError(
                f"has the compute instance {profile}; each GPU instance gets a single one, of its "
                f"own size: write {compute['whole']}"
            )
        if not _PROFILE.fullmatch(profile):
            raise ValueError(
                f"has no MIG profile in {part.strip()!r}; write profiles with their number, as in "
                '"3g.40gb:1, 1g.10gb:4", or "off"'
            )
        if count and not (count.isdecimal() and 1 <= int(count) <= MAX_INSTANCES):
            raise ValueError(f"must have a number from 1 to {MAX_INSTANCES} after {profile}:")
        found += [profile] * int(count or 1)
    return tuple(sorted(found, reverse=True))


def layout_text(layout: Sequence[str]) -> str:
    """The layout as a user writes it: 3g.40gb:1, 1g.10gb:4."""
    return sum_up_devices(layout) or OFF


def mig_resource(profile: str) -> str:
    """The resource of a MIG profile with the strategy `mixed` of the device plugin."""
    return f"nvidia.com/mig-{profile.replace('+', '.')}"


def misfit_reason(layout: Layout, model: MigModel, catalog: MigCatalog) -> str:
    """Why instances do not fit on a GPU together, or "". All profiles are the model's."""
    shapes, geometry = catalog.shapes(model), catalog.geometry(model)
    for profile, count in Counter(layout).items():
        if count > shapes[profile].most:
            return f"at most {shapes[profile].most} of {profile} fit"
    wanted = sorted((shapes[profile] for profile in layout), key=_size, reverse=True)
    if (slices := sum(shape.compute for shape in wanted)) > geometry.compute:
        return f"it needs {slices} compute slices, and the GPU has {geometry.compute}"
    return "" if _has_places(wanted, 0) else "their memory slices overlap"


def order_layout(layout: Layout, model: MigModel, catalog: MigCatalog) -> Layout:
    """The order in which the driver finds a place for each instance: the largest first."""
    shapes = catalog.shapes(model)
    return tuple(sorted(layout, key=lambda profile: _size(shapes[profile]), reverse=True))


def profiles_of(model: MigModel, catalog: MigCatalog) -> str:
    """The profiles of a model for a sentence: 1g.10gb (7), 2g.20gb (3)."""
    shapes = catalog.shapes(model)
    return ", ".join(f"{profile} ({shape.most})" for profile, shape in shapes.items())


def _size(shape: Shape) -> tuple[int, int]:
    return shape.memory, shape.compute


def _has_places(wanted: Sequence[Shape], used: int) -> bool:
    """True if all shapes have a start with free memory slices. `used`: a bit per slice."""
    if not wanted:
        return True
    masks = (((1 << wanted[0].memory) - 1) << start for start in wanted[0].starts)
    return any(_has_places(wanted[1:], used | mask) for mask in masks if not used & mask)
