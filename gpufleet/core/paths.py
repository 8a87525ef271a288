"""Paths on this machine: what ships with gpufleet, and the cache of what can be built again."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED = _PACKAGE / "_shipped"  # pyproject.toml puts it into the wheel
_IN_CHECKOUT = {"checks": "tests/post_deploy"}  # the others have one name in both


def shipped(name: str) -> Path:
    """A folder or file that ships beside the modules: `checks`, `config.py`, `deploys`,
    `inventories`, `roles` or `templates`."""
    if _INSTALLED.is_dir():
        return _INSTALLED / name
    return _PACKAGE.parent / _IN_CHECKOUT.get(name, name)


def expanded(path: str) -> Path:
    """A path of a user's, with ~; as it is where there is no such user: no file has that name."""
    return Path(os.path.expanduser(path))


def cache_dir() -> Path:
    """`$XDG_CACHE_HOME/gpufleet`, usually `~/.cache/gpufleet`; everything in it can be rebuilt."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "gpufleet"
