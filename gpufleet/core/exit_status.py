"""Exit statuses, the same for every command of gpufleet: docs/exit-status.md."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """How a command ended."""

    CONVERGED = 0  # all is as it should be, or was made so
    FAILED = 1  # a host, cluster or check failed or was not reached; the report was not written
    USAGE = 2  # wrong usage: nothing was done
    NOTHING = 4  # the limit matches nothing: nothing was done
    INTERRUPTED = 130  # by Ctrl+C
    TERMINATED = 143  # by SIGTERM
