"""The container toolkit's programs, built from NVIDIA's Go module at a given version."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from gpufleet_sandbox.cluster.cached import is_verified, mark_verified
from gpufleet_sandbox.golang import COMPILER, go_command, go_environment
from gpufleet_sandbox.locks import exclusive
from gpufleet_sandbox.process import run

MODULE = "github.com/NVIDIA/nvidia-container-toolkit"
PROGRAMS = (
    "nvidia-ctk",
    "nvidia-cdi-hook",
    "nvidia-container-runtime",
    "nvidia-container-runtime-hook",
)


def toolkit_programs(version: str, cache: Path, progress: Callable[[str], None]) -> Path:
    """A folder with PROGRAMS at `version`; built once, in `cache`/go (about 40 s)."""
    home = cache / "go"
    target = home / f"nvidia-container-toolkit-{version}"
    with exclusive(home, "build"):
        if not all(is_verified(target / name) for name in PROGRAMS):
            progress(f"building the NVIDIA container toolkit {version} with Go")
            _install(go_command(home, progress), version, home, target)
    return target


def _install(go: Path, version: str, home: Path, target: Path) -> None:
    """`go install` every program into `target`, which is created only once all are built."""
    partial = target.with_suffix(".part")
    shutil.rmtree(partial, ignore_errors=True)
    stamp = f"-X {MODULE}/internal/info.version={version}"
    # NVML's symbols are resolved on first call: with immediate binding nothing would start.
    flags = f"-s -w {stamp} -extldflags=-Wl,-z,lazy"
    environment = go_environment(home, "-trimpath", GOBIN=str(partial), CGO_ENABLED="1")
    sources = [f"{MODULE}/cmd/{name}@v{version}" for name in PROGRAMS]
    words = ["install", "-gcflags", COMPILER, "-ldflags", flags]
    run([go, *words, *sources], env=environment, timeout=1800, group=True)
    for name in PROGRAMS:
        mark_verified(partial / name, version if name == "nvidia-ctk" else "")
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
