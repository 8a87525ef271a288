"""Folders of the sandbox: the cache (images, binaries) and the state of each sandbox."""

from __future__ import annotations

from pathlib import Path

from gpufleet.core.paths import cache_dir

__all__ = ["cache_dir", "state_dir"]


def state_dir(sandbox: str) -> Path:
    """The folder of one sandbox: state.json, keys, and the scenario folder of each host."""
    return cache_dir() / "sandbox" / sandbox
