"""Runs the safe fixes of hosts, each under the lock of its host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.quoting import quote_last_line
from gpufleet.core.stopped import Stopped
from gpufleet.doctor.findings import FIX_FAILED
from gpufleet.doctor.fix import PlannedFix

FIX_SECONDS = 180  # limit of the command of a fix, in seconds
DURING_FIX = "while it was repaired"


class HostFixes:
    """The fixes of one run. It is called with each connected host before that is read again."""

    def __init__(self, fixes: Iterable[PlannedFix]) -> None:
        self._fixes = {fix.name: fix for fix in fixes}
        self.names = tuple(self._fixes)
        self.failed: dict[str, Finding] = {}  # host -> why its fix failed

    def __call__(self, host: Any) -> None:
        """Run the fix of a host of pyinfra, and keep why it failed. Raises nothing."""
        # Imported here because pyinfra makes gevent replace parts of the standard library.
        from gpufleet.host.trouble import explain_error

        try:
            _run_fix(host, self._fixes[host.name])
        except Stopped as stopped:
            self.failed[host.name] = stopped.findings[0]
        except Exception as error:  # noqa: BLE001 - the boundary: one host
            self.failed[host.name] = explain_error(host, error, DURING_FIX)


def _run_fix(host: Any, fix: PlannedFix) -> None:
    """Run a fix, unless another run has changed the host since it was judged. Raises Stopped."""
    from pyinfra.api import StringCommand

    from gpufleet.host.asking import frame_command, is_connected, privilege_arguments
    from gpufleet.host.lock import HostLock, as_step, remember_lock
    from gpufleet.host.shell import quote_command
    from gpufleet.host.sudo import run_on_host
    from gpufleet.host.trouble import explain_failed_command

    lock = HostLock(fix.seen)
    remember_lock(host, lock)
    lock.take(host)
    command = quote_command("timeout", str(FIX_SECONDS), "sh", "-c", fix.command)
    step = StringCommand(as_step(command))
    ok, output = run_on_host(host, frame_command(step), **privilege_arguments(host))
    if ok:
        return
    if not is_connected(host):
        raise Stopped(explain_failed_command(host, output.stderr_lines, DURING_FIX))
    said = quote_last_line("\n".join(output.stderr_lines)) or "it ended without a message"
    raise Stopped(FIX_FAILED(problem=said.rstrip("."), command=fix.command))
