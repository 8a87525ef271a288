"""Images of the real distributions, if a registry can be reached.

Not tested: no registry is reachable where the project is developed. `auto` therefore falls back to
the imitation if any step fails, and `gpufleet sandbox status` shows which one is used.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from gpufleet_sandbox.engine import Engine

# Without EL 7: its C library (2.17) is too old for the simulated kernel.
REGISTRY = {"ubuntu2204": "ubuntu:22.04", "ubuntu2404": "ubuntu:24.04", "debian12": "debian:12"}
WITHOUT = {"ubuntu2404": ("docker.io",)}
RPM_TOOLS = ("rpm", "dnf", "dnf-plugins-core")
PULL_SECONDS = 30
RETRY_AFTER = 3600


@dataclass(frozen=True, slots=True)
class Registry:
    """Pulls images; after a failure it does not retry for an hour."""

    engine: Engine
    cache: Path

    def pull(self, name: str) -> str:
        """Pull the image for `name`. Returns "" or the reason of the failure."""
        done = self.engine("pull", "-q", REGISTRY[name], check=False, timeout=PULL_SECONDS)
        if done.returncode == 0:
            return ""
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        self._marker.parent.mkdir(parents=True, exist_ok=True)
        self._marker.write_text(reason)
        return reason

    @property
    def failed_lately(self) -> bool:
        return self._marker.exists() and time.time() - self._marker.stat().st_mtime < RETRY_AFTER

    @property
    def _marker(self) -> Path:
        return self.cache / "images" / "no-registry"


def script(name: str, packages: list[str], recipes: Path, kernel: str) -> str:
    """The script that turns a pulled image into a host's image."""
    dropped = {*RPM_TOOLS, *WITHOUT.get(name, ())}
    wanted = " ".join(package for package in packages if package not in dropped)
    install = (recipes / "real.sh").read_text().replace("@PACKAGES@", wanted)
    return (
        f"{install}\n{(recipes / 'common.sh').read_text()}\n/usr/lib/sim/install-kernel {kernel}\n"
    )
