"""Paths on this machine: files that ship with gpufleet, and the cache."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED = _PACKAGE / "_shipped"  # pyproject.toml adds it to the wheel
_IN_CHECKOUT = {"checks": "tests/post_deploy"}  # the other folders have the same name in both


def shipped_path(name: str) -> Path:
    """The path of a shipped folder or file: `checks`, `config.py`, `deploys`, `docs`,
    `inventories`, `roles`, `templates`."""
    if _INSTALLED.is_dir():
        return _INSTALLED / name
    return _PACKAGE.parent / _IN_CHECKOUT.get(name, name)


def expand_user_path(path: str) -> Path:
    """A user's path with ~ expanded. Unchanged for an unknown user: no file has that name."""
    return Path(os.path.expanduser(path))


class NoHome(RuntimeError):
    """The user has no home folder, and no variable names another folder."""


def user_folder(variable: str, below_home: str) -> Path:
    """The folder that a variable names, or else a folder below the user's home. Raises NoHome."""
    if named := os.environ.get(variable):
        return Path(named)
    try:
        return Path.home() / below_home
    except RuntimeError as error:
        raise NoHome(f"This user has no home folder. Set HOME or {variable}.") from error


def cache_dir() -> Path:
    """`$XDG_CACHE_HOME/gpufleet`, usually `~/.cache/gpufleet`. Its content can be rebuilt. Raises
    NoHome."""
    return user_folder("XDG_CACHE_HOME", ".cache") / "gpufleet"
