"""Signals of a process that carries out a run."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from gpufleet.core.exit_status import ExitStatus

SIGNALS = {signal.SIGINT: ExitStatus.INTERRUPTED, signal.SIGTERM: ExitStatus.TERMINATED}


@contextmanager
def without_hangup() -> Iterator[None]:
    """The terminal may go away: this process, and those that it starts meanwhile, go on."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL if before is None else before)
