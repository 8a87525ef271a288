"""Packages of this machine's distribution, unpacked into the cache.

Not installed: a package such as prometheus would start a service of its own on this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpufleet_sandbox.apt import PrivateApt, machine_sources
from gpufleet_sandbox.locks import exclusive
from gpufleet_sandbox.paths import cache_dir


def unpacked(package: str, progress: Callable[[str], None] = print) -> Path:
    """The root of an unpacked package, downloaded when it is not there.

    SandboxError GF607 where the distribution has no such package.
    """
    home = cache_dir() / "debian"
    root = home / "root" / package
    whole = home / "whole" / package  # made last: what was broken off is fetched again
    with exclusive(home, "apt"):
        if not whole.exists():
            progress(f"fetching {package} from this machine's distribution")
            apt = PrivateApt(home, machine_sources())
            apt.update()
            apt.fetch([package])
            whole.parent.mkdir(exist_ok=True)
            whole.touch()
    return root


def debian_program(package: str, program: str, progress: Callable[[str], None] = print) -> Path:
    """`debian_program("prometheus", "promtool")`: a program of a package, as `unpacked`."""
    return unpacked(package, progress) / "usr" / "bin" / program
