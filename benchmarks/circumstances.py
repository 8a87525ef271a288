"""Where and when something is measured, as its page says."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import version

from benchmarks.report import Circumstances


def circumstances(
    module: str, words: Sequence[str], load: float, others: Sequence[str] = ()
) -> Circumstances:
    """The circumstances of `python -m MODULE WORDS`, which ends now. `load`: the 1-minute load
    average before it. `others`: versions of other measured programs."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    ours = [f"{name} {version(name)}" for name in ("pyinfra", "paramiko")]
    return Circumstances(
        command=shlex.join(["python", "-m", module, *words]),
        date=datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        machine=f"{os.cpu_count()} cores, {memory:.0f} GiB of memory, Linux {platform.release()}",
        versions=", ".join([f"Python {platform.python_version()}", *ours, *others]),
        load=(load, os.getloadavg()[0]),
    )
