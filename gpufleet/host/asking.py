"""Commands whose output is separated from everything else that the host prints."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from pyinfra.api import Host, StringCommand
from pyinfra.api.arguments import CONNECTOR_ARGUMENT_KEYS, auth_argument_meta, pop_global_arguments

# Around every answer, so that nothing that a login shell or a wrapper prints is taken for one. No
# file on a host holds it, and the name of a process, at most 15 characters, is too short for it.
MARK = secrets.token_hex(16)
_SHELL = ("_shell_executable", "_chdir", "_env", "_temp_dir")


def framed(command: StringCommand) -> StringCommand:
    """`command` between two lines with the mark; its exit status is kept."""
    line = f"printf '\\n%s\\n' {MARK};"
    return StringCommand(line, "(", command, "); status=$?;", line, "exit $status")


def answer(lines: Iterable[str]) -> list[str] | None:
    """The lines that a framed command printed; None where it was cut off."""
    rows = list(lines)
    marks = [number for number, line in enumerate(rows) if line == MARK]
    if len(marks) != 2:
        return None
    inside = rows[marks[0] + 1 : marks[1]]
    return inside[:-1] if inside and not inside[-1] else inside


def arguments(host: Host) -> dict[str, Any]:
    """How commands run on `host`: as its data, the configuration and the operation say."""
    known: dict[str, Any] = dict(host.current_op_global_arguments or {})
    if not known:
        known = dict(pop_global_arguments(host.state, host, {})[0])
    return {key: value for key, value in known.items() if key in CONNECTOR_ARGUMENT_KEYS}


def privileges(host: Host) -> dict[str, Any]:
    """The part of `arguments` with the user and the shell: no input, time or terminal."""
    wanted = (*auth_argument_meta, *_SHELL)
    return {key: value for key, value in arguments(host).items() if key in wanted}


def is_connected(host: Host) -> bool:
    """Whether the connection still stands; True for a host that is not reached over SSH."""
    client = getattr(host.connector, "client", None)
    if not host.connected or client is None:
        return bool(host.connected)
    transport = client.get_transport()
    return bool(transport is not None and transport.is_active())
