"""Reads the YAML data files of the rooms, with the user's own entries (own_catalog.py)."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

import yaml

from gpufleet.core.own_catalog import merge_own_entries

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_data(name: str) -> dict[str, Any]:
    """Read one data file, ROOM/NAME, as a mapping. Keys that begin with a dot only hold YAML
    anchors and are left out. Raises Stopped if catalog.d/ has files that cannot be read."""
    return merge_own_entries(name, read_shipped_data(name))


def read_shipped_data(name: str) -> dict[str, Any]:
    """A data file without the user's own entries."""
    return _parse(_place(name, ".yaml"))


def read_folder(name: str) -> list[dict[str, Any]]:
    """Read every file of a data folder, ROOM/NAME, in natural order of file names."""
    return [_parse(file) for file in sorted(_place(name).iterdir(), key=_order)]


def _place(name: str, suffix: str = "") -> Any:
    room, _, stem = name.partition("/")
    return resources.files("gpufleet").joinpath(f"{room}/data/{stem}{suffix}")


def _parse(file: Any) -> dict[str, Any]:
    data = yaml.load(file.read_bytes(), Loader=_LOADER)
    return {key: value for key, value in data.items() if not key.startswith(".")}


def _order(file: Any) -> list[str | int]:
    """The sort key of a file: rhel10.yaml comes after rhel9.yaml."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", file.name)]
