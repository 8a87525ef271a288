"""Waits for another run of the package manager, or of gpufleet, to finish."""

from __future__ import annotations

import time
from collections.abc import Iterable

from pyinfra import logger
from pyinfra.api import FunctionCommand, Host, State

from gpufleet.core.findings import Finding
from gpufleet.core.stopped import Stopped
from gpufleet.host import findings as access
from gpufleet.host.lock import holder_name, lock_of
from gpufleet.host.reading import HostHolder, read_fact
from gpufleet.packages import findings
from gpufleet.packages.operations.reading import LockHolder
from gpufleet.run.reporting import RunReport

PACKAGE_LOCK_POLL_SECONDS = 2.0  # seconds between two checks
PACKAGE_LOCK_REPORT_SECONDS = 10.0  # seconds between two lines of progress

# findings that end with the transaction of the lock's holder
_WHILE_LOCKED = {
    kind.code
    for kind in (findings.LOCK_HELD, findings.BROKEN_PACKAGES, findings.PACKAGES_UNFINISHED)
}


Holder = type[LockHolder] | type[HostHolder]  # facts: the holder of a lock, "" if it is free
_PROGRESS = {
    LockHolder: "waiting for {holder}, which holds the package manager's lock",
    HostHolder: "waiting for another run of gpufleet: {holder}",
}


def wait_for_lock(timeout: int) -> FunctionCommand:
    """A command that waits for the package manager. It fails after `timeout` seconds."""
    return FunctionCommand(_wait, (timeout,), {})


def wait_before_planning(host: Host, timeout: int) -> Finding | None:
    """Outside any operation, wait until no other run and no package manager is active on the host.
    Returns why that failed. Raises Stopped if the host does not respond."""
    return _until_free(host, timeout, HostHolder) or _until_free(host, timeout, LockHolder)


def without_lock_effects(found: Iterable[Finding]) -> list[Finding]:
    """The findings without those that a lock explains: its holder leaves packages half installed
    until it ends."""
    return [each for each in found if each.code not in _WHILE_LOCKED]


def _wait(state: State, host: Host, timeout: int) -> bool:
    """Raises Stopped. pyinfra uses the result only of functions that take `state` and `host`."""
    ours = lock_of(host)
    done = access.NO_MORE if ours and ours.used else access.NOTHING
    if problem := _until_free(host, timeout, LockHolder, done):
        part = RunReport.of(state).host(host.name)
        part.findings = without_lock_effects(part.findings)
        raise Stopped(problem)
    return True


def _until_free(
    host: Host, timeout: int, lock: Holder, done: str = access.NOTHING
) -> Finding | None:
    began = time.monotonic()
    reported = began - PACKAGE_LOCK_REPORT_SECONDS
    while holder := read_fact(lock):
        now = time.monotonic()
        if now - began >= timeout:
            if lock is HostHolder:
                return access.ANOTHER_RUN(holder=holder_name(holder), done=done)
            return findings.LOCK_NOT_RELEASED(holder=holder, seconds=timeout, done=done)
        if now - reported >= PACKAGE_LOCK_REPORT_SECONDS:
            saying = _PROGRESS[lock].format(holder=holder_name(holder))
            logger.info(f"{host.print_prefix}{saying}: {now - began:.0f} of {timeout} s")
            reported = now
        time.sleep(min(PACKAGE_LOCK_POLL_SECONDS, max(timeout - (now - began), 0.1)))
    return None
