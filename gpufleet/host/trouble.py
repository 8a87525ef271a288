"""What went wrong with a host, as a finding: the cause, the place and what to do, no secrets."""

from __future__ import annotations

import traceback
from collections.abc import Sequence

from paramiko import SSHException
from pyinfra.api import Host
from pyinfra.api.exceptions import ConnectError, PyinfraError

from gpufleet.core.findings import Finding
from gpufleet.core.redact import redact
from gpufleet.host.asking import is_connected
from gpufleet.host.findings import access
from gpufleet.host.findings.machine import FACTS_UNREADABLE
from gpufleet.host.liveness import why_lost

SHOWN = 300  # characters of what a host said
_OURS = ("gpufleet", "roles")
_AROUND = ("gpufleet.host.operation", "gpufleet.host.boundary")  # only pass it on
_PROMPT = "getpass"  # the module of Python that asks for a password
_ASKS = (
    "sudo asks for a password and got none",
    "Set _sudo_password for this host, out of a vault; or run at a terminal; or let the user run "
    "commands without a password (NOPASSWD in sudoers).",
)
# What sudo, su, doas and dzdo say, in lower case -> cause and remedy.
_REFUSALS = (
    ("a password is required", *_ASKS),
    ("interactive authentication is required", *_ASKS),
    (
        "you must have a tty",
        "sudo demands a terminal (requiretty in sudoers)",
        "Take the user out of it with a line in /etc/sudoers.d: Defaults:USER !requiretty",
    ),
    (
        "incorrect password attempt",
        "sudo does not take the password",
        "Correct _sudo_password for this host.",
    ),
    ("no password was provided", *_ASKS),
    (
        "authentication failure",
        "su or sudo does not take the password",
        "Correct _su_password or _sudo_password for this host.",
    ),
    (
        "sudoers",
        "the user of the connection may not use sudo",
        "Let the user run all commands as root in /etc/sudoers.d, or connect as another one.",
    ),
    (
        "not allowed to",
        "sudo does not let the user of the connection run this",
        "Let the user run all commands as root in /etc/sudoers.d, or connect as another one.",
    ),
    (
        "operation not permitted",
        "the user of the connection may not become root",
        "Permit it in doas.conf, or in the policy of dzdo, or connect as another user.",
    ),
    (
        "sudo: not found",
        "there is no sudo on the host",
        "Install it, or set _doas, _dzdo or _su_user instead, or log in as root.",
    ),
    (
        "failed to create sudo_askpass",
        "the password cannot be handed to sudo: no file can be made in /tmp of the host",
        "See that /tmp can be written to and has space, or set _temp_dir to another folder.",
    ),
)  # fmt: skip
_NO_SHELL = ("this account is currently not available", "nologin", "no shell")


def refusal(host: Host, said: Sequence[str], doing: str) -> Finding:
    """Why a command that every host can run failed, by what the host said.

    `doing`: what was going on, as in "while its facts were gathered".
    """
    if not is_connected(host):
        return access.CONNECTION_LOST(doing=doing, cause=why_lost(host))
    text = redact(" / ".join(line.strip() for line in said if line.strip()))[:SHOWN]
    for words, cause, remedy in _REFUSALS:
        if words in text.lower():
            return access.PRIVILEGES_REFUSED(cause=cause, remedy=remedy)
    if any(words in text.lower() for words in _NO_SHELL):
        return access.NO_SHELL(cause=text)
    return FACTS_UNREADABLE(
        host=host.name, doing=doing, problem=text or "it failed and said nothing"
    )


def explain_error(host: Host, error: Exception, doing: str) -> Finding:
    """What an exception means for the one host that it came up with. Its text is left out where it
    may quote what was read from the host."""
    places = _places(error)
    if isinstance(error, EOFError) and any(module == _PROMPT for module, _ in places):
        return access.PRIVILEGES_REFUSED(cause=_ASKS[0], remedy=_ASKS[1])
    if isinstance(error, TimeoutError):
        return access.CONNECTION_LOST(doing=doing, cause="the host did not answer in time")
    if isinstance(error, SSHException | ConnectError | EOFError | ConnectionError) or (
        isinstance(error, OSError) and not is_connected(host)
    ):
        return access.CONNECTION_LOST(doing=doing, cause=why_lost(host, _named(error)))
    if isinstance(error, PyinfraError):
        return refusal(host, [str(error)], doing)
    return access.UNEXPECTED(error=type(error).__name__, place=_place(places), doing=doing)


def _named(error: Exception) -> str:
    text = redact(str(error))[:SHOWN]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _places(error: Exception) -> list[tuple[str, int]]:
    """Module and line of every call that led to the error, outermost first."""
    calls = traceback.walk_tb(error.__traceback__)
    return [(str(frame.f_globals.get("__name__")), line) for frame, line in calls]


def _place(places: Sequence[tuple[str, int]]) -> str:
    """The last of our own lines, and the last line of all where that is another's."""
    inner = [place for place in places if place[0] not in _AROUND] or places
    ours = [place for place in inner if place[0].split(".")[0] in _OURS]
    shown = dict.fromkeys([*ours[-1:], *places[-1:]])
    return ", in ".join(f"{module} line {line}" for module, line in shown)
