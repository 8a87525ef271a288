"""Paths on this machine: what ships with gpufleet, and the cache of what can be built again."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED = _PACKAGE / "_shipped"  # pyproject.toml puts it into the wheel
_IN_CHECKOUT = {"checks": "tests/post_deploy"}  # the others have one name in both


def shipped(name: str) -> Path:
    """A folder or file that ships beside the modules: `checks`, `config.py`, `deploys`,
    `docs`, `inventories`, `roles` or `templates`."""
    if _INSTALLED.is_dir():
        return _INSTALLED / name
    return _PACKAGE.parent / _IN_CHECKOUT.get(name, name)


def expanded(path: str) -> Path:
    """A path of a user's, with ~; as it is where there is no such user: no file has that name."""
    return Path(os.path.expanduser(path))


class NoHome(RuntimeError):
    """The user has no home folder, and no variable names another place."""


def user_folder(variable: str, below_home: str) -> Path:
    """The folder that a variable names, else one of the user's. Raises NoHome."""
    if named := os.environ.get(variable):
        return Path(named)
    try:
        return Path.home() / below_home
    except RuntimeError as error:
        raise NoHome(f"This user has no home folder. Set HOME or {variable}.") from error


def cache_dir() -> Path:
    """`$XDG_CACHE_HOME/gpufleet`, usually `~/.cache/gpufleet`; everything in it can be rebuilt.
    Raises NoHome."""
    return user_folder("XDG_CACHE_HOME", ".cache") / "gpufleet"
