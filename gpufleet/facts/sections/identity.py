"""Parses a host's identity, boot, distribution, clock and free space."""

from __future__ import annotations

from collections.abc import Sequence

from gpufleet.facts.distribution import OsRelease
from gpufleet.facts.sections import split_records


def parse_os(lines: Sequence[str]) -> OsRelease:
    values: dict[str, str] = {}
    for line in lines:
        key, separator, value = line.strip().partition("=")
        if separator and not key.startswith("#"):
            values[key] = value.strip("\"'")
    if not values.get("ID"):
        raise ValueError("there is no ID: /etc/os-release is missing or cut off")
    return OsRelease(
        id=values["ID"],
        version_id=values.get("VERSION_ID", ""),
        id_like=tuple(values.get("ID_LIKE", "").split()),
        codename=values.get("VERSION_CODENAME") or values.get("UBUNTU_CODENAME", ""),
        pretty_name=values.get("PRETTY_NAME", ""),
    )


def parse_identity(lines: Sequence[str]) -> dict[str, str]:
    values = dict(split_records(lines))
    if not values.get("boot"):
        raise ValueError("there is no boot id: /proc is not mounted or not readable")
    return values


def parse_clock(lines: Sequence[str]) -> int:
    return int(dict(split_records(lines))["clock"])


def parse_space(lines: Sequence[str]) -> dict[str, int]:
    free: dict[str, int] = {}
    for line in filter(str.strip, lines):
        blocks, size, path = line.split(" ", 2)
        free[path] = int(blocks) * int(size)
    return free
