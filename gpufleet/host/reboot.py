"""Reboots hosts if allowed, but never gpufleet's own machine, and waits for a new boot ID."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyinfra import host, logger
from pyinfra.api import FunctionCommand, Host, State, StringCommand
from pyinfra.api.exceptions import ConnectError

from gpufleet.core.findings import Finding
from gpufleet.core.quoting import quote_last_line
from gpufleet.host import findings
from gpufleet.host.asking import (
    OUTPUT_MARK,
    frame_command,
    framed_answer,
    is_connected,
    privilege_arguments,
)
from gpufleet.host.liveness import CUT
from gpufleet.host.lock import lock_of
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import explain_finding, script_command
from gpufleet.host.sudo import run_on_host
from gpufleet.run.reporting import RunReport

BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
# Seconds between two tries to connect. A booting host may refuse logins of users other than root:
# sshd 9.8 and newer then refuses a client that tries more often.
# Source: https://github.com/ClusterLabs/crmsh/pull/1811 (PerSourcePenalties, read 2026-11-28)
REBOOT_POLL_SECONDS = 5.0
REBOOT_REPORT_SECONDS = 15.0  # seconds between two lines of progress


@host_operation
def reboot_if_needed(
    reason: Callable[[], str | None], allowed: bool, timeout: int, end_work: bool
) -> Commands:
    """
    Reboot the host if there is a reason and it is allowed, and wait until it is up again.

    The command checks again for work on the GPUs, because the facts are outdated.

    + reason: the reason, known only during the run, or None for no reboot
    + allowed: node_reboot says so, and the host is not the machine that gpufleet runs on
    + timeout: seconds until it must report a new boot ID
    + end_work: kill work on the GPUs; otherwise stop the host
    """
    if not reason() or not allowed:
        host.noop(reason() or "no reboot required")
        return
    yield FunctionCommand(_reboot, (timeout, end_work), {})


def _reboot(state: State, host: Host, timeout: int, end_work: bool) -> bool:
    """pyinfra uses the return value only of a function that takes `state` and `host`."""
    before = _boot_id(host)
    if not before:  # without it, a reboot cannot be detected
        return _failed(state, host, findings.REBOOT_NOT_BEGUN(why="its boot ID cannot be read"))
    work = said = ""
    try:  # the host may be faster than the answer
        command = frame_command(script_command("host/reboot", "" if end_work else "spare"))
        ok, output = run_on_host(host, command, **privilege_arguments(host))
        work = "" if ok else ", ".join(framed_answer(output.stdout_lines) or ())
        said = quote_last_line("\n".join(output.stderr_lines)).rstrip(".")
        ok = ok or _was_cut(host, output.stdout_lines)
    except CUT as error:
        logger.debug(f"{host.name} cut the connection: {error}")
        ok = True
    if not ok:
        refused = findings.REBOOT_NOT_BEGUN(why=said or "the command that reboots it failed")
        return _failed(state, host, findings.REBOOT_PUT_OFF(work=work) if work else refused)
    if not _wait_for_new_boot(host, before, timeout):
        return _failed(state, host, findings.REBOOT_FAILED(seconds=timeout))
    if lock := lock_of(host):
        lock.renew()
    return True


def _was_cut(host: Host, lines: list[str]) -> bool:
    """True if the connection ended before the exit status came: paramiko reports that as failure.

    A command that never began, as without sudo's password, leaves no mark and a connection.
    """
    return framed_answer(lines) is None and (OUTPUT_MARK in lines or not is_connected(host))


def _failed(state: State, host: Host, problem: Finding) -> bool:
    RunReport.of(state).host(host.name).findings.append(problem)
    logger.error(explain_finding(host.name, problem))
    return False


def _wait_for_new_boot(host: Host, before: str, timeout: int) -> bool:
    began = reported = time.monotonic()
    while (now := time.monotonic()) - began < timeout:
        if now - reported >= REBOOT_REPORT_SECONDS:
            logger.info(f"{host.print_prefix}waiting for the reboot: {now - began:.0f} s")
            reported = now
        host.disconnect()
        try:
            host.connect(show_errors=False, raise_exceptions=True)
            # the old boot still responds for some seconds: the ID shows which one it is
            if _boot_id(host) not in ("", before):
                return True
        except (ConnectError, *CUT) as error:
            logger.debug(f"{host.name} does not respond yet: {error}")
        time.sleep(REBOOT_POLL_SECONDS)
    return False


def _boot_id(host: Host) -> str:
    ok, output = host.run_shell_command(frame_command(StringCommand(BOOT_ID)), _timeout=10)
    return "".join(framed_answer(output.stdout_lines) or ()) if ok else ""
