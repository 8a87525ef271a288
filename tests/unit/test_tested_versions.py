"""The extra `tested` pins every package of the product at the version of constraints.txt."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


def needs(of: Requirement) -> Iterator[Requirement]:
    """The requirements of a package on this machine, with those of the extras in `of` alone."""
    for text in requires(of.name) or ():
        found = Requirement(text)
        extras = ["", *of.extras]
        if found.marker is None or any(found.marker.evaluate({"extra": each}) for each in extras):
            yield found


def test_every_package_is_pinned_at_the_tested_version() -> None:
    pins = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line
    )
    known = {canonicalize_name(name): version for name, version in pins.items()}
    wanted: dict[str, str] = {}
    left = list(needs(Requirement("gpufleet")))
    while left:
        each = left.pop()
        name = canonicalize_name(each.name)
        if name not in wanted:
            wanted[name] = known[name]
            left += needs(each)
    before = {canonicalize_name(each.name) for each in needs(Requirement("gpufleet"))}
    asked = needs(Requirement("gpufleet[tested]"))
    pinned = [each for each in asked if str(each.specifier).startswith("==")]
    found = {canonicalize_name(each.name): str(each.specifier)[2:] for each in pinned}
    assert before <= found.keys()
    assert found == wanted
