"""Exit statuses of every gpufleet command: docs/reference/exit-status.md."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """The exit status of a command."""

    CONVERGED = 0  # success: everything is converged
    FAILED = 1  # a host, cluster or check failed or is unreachable; the report was not written
    USAGE = 2  # usage error: nothing was done
    WARNING = 1  # of `doctor`
    CRITICAL = 2  # of `doctor`, also for UNKNOWN; wrong usage leaves no verdict, and is USAGE
    DRIFT = 2  # of `status --drift` and `plan --detailed-exitcode`: wrong usage is FAILED there
    NOTHING = 4  # the limit matches nothing: nothing was done
    INTERRUPTED = 130  # by Ctrl+C
    TERMINATED = 143  # by SIGTERM
