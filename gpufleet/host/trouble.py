"""Turns errors of a host into findings: the cause, the place and what to do, without secrets."""

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

_OURS = ("gpufleet", "roles")
_AROUND = ("gpufleet.host.operation", "gpufleet.host.boundary")  # only re-raise
_PROMPT = "getpass"  # the module of Python that asks for a password
_ASKS = (
    "sudo requires a password, and none is set",
    "Set _sudo_password for this host, from a vault; or run in a terminal; or allow the user to "
    "run commands without a password (NOPASSWD in sudoers).",
)
# Messages of sudo, su, doas and dzdo, in lower case -> cause and remedy.
_REFUSALS = (
    ("a password is required", *_ASKS),
    ("interactive authentication is required", *_ASKS),
    (
        "you must have a tty",
        "sudo requires a terminal (requiretty in sudoers)",
        "Exempt the user with a line in /etc/sudoers.d: Defaults:USER !requiretty",
    ),
    (
        "incorrect password attempt",
        "sudo rejected the password",
        "Correct _sudo_password for this host.",
    ),
    ("no password was provided", *_ASKS),
    (
        "authentication failure",
        "su or sudo rejected the password",
        "Correct _su_password or _sudo_password for this host.",
    ),
    (
        "sudoers",
        "the connecting user is not in sudoers",
        "Allow the user to run all commands as root in /etc/sudoers.d, or connect as another one.",
    ),
    (
        "not allowed to",
        "sudo does not allow the connecting user to run this command",
        "Allow the user to run all commands as root in /etc/sudoers.d, or connect as another one.",
    ),
    (
        "operation not permitted",
        "the connecting user is not allowed to become root",
        "Allow it in doas.conf or in dzdo's policy, or connect as another user.",
    ),
    (
        "sudo: not found",
        "sudo is not installed on the host",
        "Install it, or set _doas, _dzdo or _su_user instead, or log in as root.",
    ),
    (
        "failed to create sudo_askpass",
        "cannot pass the password to sudo: no file can be created in /tmp of the host",
        "Check that /tmp is writable and has free space, or set _temp_dir to another folder.",
    ),
)  # fmt: skip
_NO_SHELL = ("this account is currently not available", "nologin", "no shell")


def refusal(host: Host, output: Sequence[str], doing: str) -> Finding:
    """Why a command that every host can run failed, by the host's output.

    `doing`: the step that failed, as in "while its facts were gathered".
    """
    if not is_connected(host):
        return findings.CONNECTION_LOST(doing=doing, cause=why_lost(host))
    text = "\n".join(output)
    said = quote_last_line(text)
    for words, cause, remedy in _REFUSALS:
        if words in text.lower():
            return findings.PRIVILEGES_REFUSED(cause=cause, remedy=remedy)
    if any(words in text.lower() for words in _NO_SHELL):
        return findings.NO_SHELL(cause=said)
    return findings.FACTS_UNREADABLE(
        host=host.name, doing=doing, problem=said or "it failed without a message"
    )


def explain_error(host: Host, error: Exception, doing: str) -> Finding:
    """The finding for an exception that one host raised. Its text is omitted where it may quote
    data read from the host."""
    places = _places(error)
    if isinstance(error, EOFError) and any(module == _PROMPT for module, _ in places):
        return findings.PRIVILEGES_REFUSED(cause=_ASKS[0], remedy=_ASKS[1])
    if isinstance(error, TimeoutError):
        return findings.CONNECTION_LOST(doing=doing, cause="the host did not respond in time")
    if isinstance(error, SSHException | ConnectError | EOFError | ConnectionError) or (
        isinstance(error, OSError) and not is_connected(host)
    ):
        return findings.CONNECTION_LOST(doing=doing, cause=why_lost(host, _named(error)))
    if isinstance(error, PyinfraError):
        return refusal(host, [str(error)], doing)
    return findings.UNEXPECTED(error=type(error).__name__, place=_place(places), doing=doing)


def _named(error: Exception) -> str:
    text = quote_field(str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _places(error: Exception) -> list[tuple[str, int]]:
    """Module and line of every call that led to the error, outermost first."""
    calls = traceback.walk_tb(error.__traceback__)
    return [(str(frame.f_globals.get("__name__")), line) for frame, line in calls]


def _place(places: Sequence[tuple[str, int]]) -> str:
    """The last of our own lines, and the last line of all if it is not ours."""
    inner = [place for place in places if place[0] not in _AROUND] or places
    ours = [place for place in inner if place[0].split(".")[0] in _OURS]
    shown = dict.fromkeys([*ours[-1:], *places[-1:]])
    return ", in ".join(f"{module} line {line}" for module, line in shown)
