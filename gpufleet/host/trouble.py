"""Turns errors of a host into findings with cause, place and remedy, without secrets."""

from __future__ import annotations

import traceback
from collections.abc import Sequence

from paramiko import SSHException
from pyinfra.api import Host
from pyinfra.api.exceptions import ConnectError, PyinfraError

from gpufleet.core.findings import Finding
from gpufleet.core.quoting import quote_field, quote_last_line
from gpufleet.host import findings
from gpufleet.host.asking import is_connected
from gpufleet.host.liveness import why_lost
from gpufleet.run.connection import NoPassword

_OURS = ("gpufleet", "roles")
_AROUND = ("gpufleet.host.operation", "gpufleet.host.boundary")  # these modules only re-raise
# Messages of sudo, sudo-rs, su, doas and dzdo, in lower case
_REFUSALS = (
    "a password is required", "interactive authentication is required", "you must have a tty",
    "incorrect password attempt", "no password was provided", "authentication failure", "sudoers",
    "not allowed to", "operation not permitted", "sudo: not found", "failed to create sudo_askpass",
    "may not run sudo", "incorrect authentication attempt",
)  # fmt: skip
# The last one is of csh and tcsh, whose quotes end with the line
_NO_SHELL = ("this account is currently not available", "nologin", "no shell", "unmatched '")


def explain_failed_command(host: Host, output: Sequence[str], doing: str) -> Finding:
    """Explain by the host's output why a command failed that every host can run.

    `doing`: the step that failed, as in "while its facts were gathered".
    """
    if not is_connected(host):
        return findings.CONNECTION_LOST(doing=doing, cause=why_lost(host))
    text = "\n".join(output)
    said = quote_last_line(text)
    if any(words in text.lower() for words in _REFUSALS):
        return findings.PRIVILEGES_REFUSED(cause=said.rstrip("."))
    if any(words in text.lower() for words in _NO_SHELL):
        return findings.NO_SHELL(cause=said)
    problem = said or "it failed without a message"
    return findings.FACTS_UNREADABLE(host=host.name, doing=doing, problem=problem)


def explain_error(host: Host, error: Exception, doing: str) -> Finding:
    """The finding for an exception about one host. Its text is omitted if it may quote data from
    the host."""
    if isinstance(error, NoPassword):
        why = "sudo asks for a password, and none is set, or its helper cannot run in /tmp"
        return findings.PRIVILEGES_REFUSED(cause=why)
    if isinstance(error, TimeoutError):
        return findings.CONNECTION_LOST(doing=doing, cause="the host did not respond in time")
    if isinstance(error, SSHException | ConnectError | EOFError | ConnectionError) or (
        isinstance(error, OSError) and not is_connected(host)
    ):
        text = quote_field(str(error))
        named = f"{type(error).__name__}: {text}" if text else type(error).__name__
        return findings.CONNECTION_LOST(doing=doing, cause=why_lost(host, named))
    if isinstance(error, PyinfraError):
        return explain_failed_command(host, [str(error)], doing)
    return findings.UNEXPECTED(error=type(error).__name__, place=_place(error), doing=doing)


def _place(error: Exception) -> str:
    """The last line in gpufleet's code, and the last line of all if that is in other code."""
    calls = traceback.walk_tb(error.__traceback__)  # outermost first
    places = [(str(frame.f_globals.get("__name__")), line) for frame, line in calls]
    inner = [place for place in places if place[0] not in _AROUND] or places
    ours = [place for place in inner if place[0].split(".")[0] in _OURS]
    shown = dict.fromkeys([*ours[-1:], *places[-1:]])
    return ", in ".join(f"{module} line {line}" for module, line in shown)
