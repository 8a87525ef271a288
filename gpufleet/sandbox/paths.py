"""Where the sandbox keeps what it builds (images, binaries) and the state of each sandbox."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """`$XDG_CACHE_HOME/gpufleet`, usually `~/.cache/gpufleet`; everything in it can be rebuilt."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gpufleet"


def state_dir(sandbox: str) -> Path:
    """The folder of one sandbox: state.json, keys, and the scenario folder of each host."""
    return cache_dir() / "sandbox" / sandbox
