"""Exit statuses of every gpufleet command: docs/reference/exit-status.md."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """The exit status of a command."""

    CONVERGED = 0  # success: everything is converged
    FAILED = 1  # a host, cluster or check failed or is unreachable; the report was not written
    USAGE = 2  # usage error: nothing was done
    DRIFT = 2  # of `status --drift` and `plan --detailed-exitcode`: wrong usage is FAILED there
    NOTHING = 4  # the limit matches nothing: nothing was done
    INTERRUPTED = 130  # by Ctrl+C
    TERMINATED = 143  # by SIGTERM
