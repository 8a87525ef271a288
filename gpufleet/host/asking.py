"""Frames commands, so that their output can be separated from other output of the host."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from pyinfra.api import Host, StringCommand
from pyinfra.api.arguments import CONNECTOR_ARGUMENT_KEYS, auth_argument_meta, pop_global_arguments

# Marks the start and end of answers, so that output of a login shell is not taken for one. No
# file on a host contains it, and process names of at most 15 characters are too short for it.
OUTPUT_MARK = secrets.token_hex(16)
_SHELL = ("_shell_executable", "_chdir", "_env", "_temp_dir")


def frame_command(command: StringCommand) -> StringCommand:
    """`command` between two lines with the mark; its exit status is kept."""
    line = f"printf '\\n%s\\n' {OUTPUT_MARK};"
    return StringCommand(line, "(", command, "); status=$?;", line, "exit $status")


def framed_answer(lines: Iterable[str]) -> list[str] | None:
    """The lines that a framed command printed, or None if they were cut off."""
    rows = list(lines)
    marks = [number for number, line in enumerate(rows) if line == OUTPUT_MARK]
    if len(marks) != 2:
        return None
    inside = rows[marks[0] + 1 : marks[1]]
    return inside[:-1] if inside and not inside[-1] else inside


def host_arguments(host: Host) -> dict[str, Any]:
    """The connector's arguments for `host`, from its data, the configuration and the operation."""
    known: dict[str, Any] = dict(host.current_op_global_arguments or {})
    if not known:
        known = dict(pop_global_arguments(host.state, host, {})[0])
    return {key: value for key, value in known.items() if key in CONNECTOR_ARGUMENT_KEYS}


def privilege_arguments(host: Host) -> dict[str, Any]:
    """The part of `host_arguments` about the user and the shell: no input, timeout or terminal."""
    wanted = (*auth_argument_meta, *_SHELL)
    return {key: value for key, value in host_arguments(host).items() if key in wanted}


def is_connected(host: Host) -> bool:
    """True if the connection still exists, or if the host is not reached over SSH."""
    client = getattr(host.connector, "client", None)
    if not host.connected or client is None:
        return bool(host.connected)
    transport = client.get_transport()
    return bool(transport is not None and transport.is_active())
