"""One run at a time per cluster and machine: what a run left pending is known to be dead."""

from __future__ import annotations

import fcntl
import hashlib
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from gpufleet.findings import cluster as findings
from gpufleet.operations.cluster_access import ClusterProblem

POLL = 1.0  # seconds between two tries
REPORT = 10.0  # seconds between two lines of progress
TIMEOUT = 600.0  # seconds to wait for another run


def controller_id() -> str:
    """What tells this machine from others, fit for a label: no name, so that nothing leaks."""
    machine = Path("/etc/machine-id")
    known = machine.read_text() if machine.is_file() else ""
    return hashlib.sha256(f"{known}{platform.node()}".encode()).hexdigest()[:16]


def lock_cluster(uid: str, folder: Path, say: Callable[[str], None]) -> IO[str]:
    """Hold the lock of the cluster with that uid until the file is closed by all who have it.

    Every helm that is started inherits it: a helm that outlives its run still holds the lock.
    Raises ClusterProblem when another run does not end in time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = open(folder / f"cluster-{uid}.lock", "w")  # noqa: SIM115
    began = time.monotonic()
    reported = began - REPORT
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            now = time.monotonic()
        if now - began >= TIMEOUT:
            handle.close()
            raise ClusterProblem(findings.RUN_IN_PROGRESS(seconds=f"{TIMEOUT:.0f}"))
        if now - reported >= REPORT:
            reported = now
            say(f"waiting for another run on this cluster, or a helm of it: {now - began:.0f} s")
        time.sleep(POLL)
