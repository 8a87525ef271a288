"""Waiting for another run of the package manager to finish."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyinfra import logger
from pyinfra.api import FunctionCommand, Host, State

from gpufleet.findings import Finding
from gpufleet.findings import packages as findings
from gpufleet.operations.asking import privileges
from gpufleet.operations.reading import LockHolder, read
from gpufleet.operations.reporting import RunReport
from gpufleet.operations.shell import explain

POLL = 2.0  # seconds between two looks
REPORT = 10.0  # seconds between two lines of progress


def wait_for_lock(timeout: int) -> FunctionCommand:
    """A command that waits until the package manager is free; it fails after `timeout` seconds."""
    return FunctionCommand(_wait, (timeout,), {})


def wait_before_planning(host: Host, timeout: int) -> Finding | None:
    """Wait, outside any operation, until the package manager is free; or why that was in vain."""
    return _until_free(host, timeout, lambda: read(LockHolder))


def _wait(state: State, host: Host, timeout: int) -> bool:
    """pyinfra heeds what a function returns only where it takes `state` and `host`."""
    problem = _until_free(host, timeout, lambda: _holder(state, host))
    if problem is None:
        return True
    RunReport.of(state).host(host.name).findings.append(problem)
    logger.error(explain(host.name, problem))
    return False


def _until_free(host: Host, timeout: int, look: Callable[[], str]) -> Finding | None:
    began = time.monotonic()
    reported = began - REPORT
    while holder := look():
        now = time.monotonic()
        if now - began >= timeout:
            return findings.LOCK_NOT_RELEASED(holder=holder, seconds=timeout)
        if now - reported >= REPORT:
            logger.info(
                f"{host.print_prefix}waiting for {holder}, which holds the package manager's lock: "
                f"{now - began:.0f} of {timeout} s"
            )
            reported = now
        time.sleep(min(POLL, max(timeout - (now - began), 0.1)))
    return None


def _holder(state: State, host: Host) -> str:
    """The process that holds the lock now, "" when it is free."""
    ok, output = host.run_shell_command(
        LockHolder().command(), print_output=state.print_output, **privileges(host)
    )
    return LockHolder().process(output.stdout_lines) if ok else ""
