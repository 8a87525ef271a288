"""Reads the YAML files of the rooms; imports nothing of gpufleet."""

from __future__ import annotations

from importlib import resources
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(name: str) -> dict[str, Any]:
    """One file by ROOM/NAME as a mapping; keys that begin with a dot only hold anchors and are left
    out."""
    room, _, stem = name.partition("/")
    text = resources.files("gpufleet").joinpath(f"{room}/data/{stem}.yaml").read_bytes()
    data = yaml.load(text, Loader=_LOADER)
    return {key: value for key, value in data.items() if not key.startswith(".")}
