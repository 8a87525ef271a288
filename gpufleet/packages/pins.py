"""Pins: apt preferences that keep packages at a version even if they are not held. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from gpufleet.core.render import render
from gpufleet.host.file_write import FileWrite


def preferences(path: str, title: str, packages: Iterable[str], version: str) -> FileWrite:
    """The file that pins `packages` to an upstream version; `title` names them in its comment."""
    names = sorted(packages)
    text = render("repository/apt-preferences", title=title, packages=names, version=version)
    return FileWrite(path, text)
