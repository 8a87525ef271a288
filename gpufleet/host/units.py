"""Unit files that systemd does not read while containers have GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpufleet.core.findings import Finding
from gpufleet.host.findings import RELOAD_WAITS

_WAITS = re.compile(r"reload waits ([\w@.-]+)")  # as units.sh prints it


def reload_waits(unit: str) -> Finding:
    """The finding about a unit whose file systemd has not read."""
    return RELOAD_WAITS(unit=unit.removesuffix(".service"))


def reloads_waiting(lines: Iterable[str]) -> list[Finding]:
    """The same for each unit that a script names in its output."""
    return [reload_waits(found[1]) for found in map(_WAITS.fullmatch, lines) if found]
