"""Packages of this machine's distribution, unpacked into the cache.

They are not installed: a package such as prometheus would start a service on this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpufleet_sandbox.apt import PrivateApt, machine_sources
from gpufleet_sandbox.locks import exclusive
from gpufleet_sandbox.paths import cache_dir


def unpacked(package: str, progress: Callable[[str], None] = print) -> Path:
    """The root of an unpacked package, downloaded if it is not cached.

    SandboxError GF607 if the distribution has no such package.
    """
    home = cache_dir() / "debian"
    root = home / "root" / package
    complete = home / "whole" / package  # created last: an interrupted download is repeated
    with exclusive(home, "apt"):
        if not complete.exists():
            progress(f"fetching {package} from this machine's distribution")
            apt = PrivateApt(home, machine_sources())
            apt.update()
            apt.fetch([package])
            complete.parent.mkdir(exist_ok=True)
            complete.touch()
    return root


def debian_program(package: str, program: str, progress: Callable[[str], None] = print) -> Path:
    """A program of a package: `debian_program("prometheus", "promtool")`. See `unpacked`."""
    return unpacked(package, progress) / "usr" / "bin" / program
