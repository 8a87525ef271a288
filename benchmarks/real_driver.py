"""The first installation of a real driver: Debian's own packages, with DKMS's real build."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks import first
from benchmarks.fleet import Fleet
from benchmarks.ours import Programs
from gpufleet_sandbox.apt import machine_sources
from gpufleet_sandbox.archive_kernel import DRIVER, KIND, SUITE, boot_archive_kernel


def measure(name: str, work: Path, progress: Callable[[str], None]) -> first.First | None:
    """Measure one round on one host. Returns None if this machine's archive is not Debian 12's."""
    if machine_sources().suite != SUITE:
        progress(f"no real driver: this machine's packages are {machine_sources().suite}'s")
        return None
    options = [
        word for key, value in DRIVER.items() for word in ("--data", f"{key}={json.dumps(value)}")
    ]
    fleet = Fleet(name, work, progress, KIND, boot_archive_kernel)
    try:
        programs = Programs(fleet.env, work, options)
        found = first.measure(fleet, fleet.grow(1), programs, 1, progress)
        return replace(found, driver=f"Debian's {DRIVER['driver_branch']}")
    finally:
        fleet.down()
