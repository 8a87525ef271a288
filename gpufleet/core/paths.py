"""The cache on this machine, for what can be downloaded or built again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """`$XDG_CACHE_HOME/gpufleet`, usually `~/.cache/gpufleet`; everything in it can be rebuilt."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gpufleet"
