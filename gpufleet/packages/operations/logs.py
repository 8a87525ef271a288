"""Shows the logs of package managers and DKMS while a transaction runs."""

from __future__ import annotations

import time

from pyinfra import host
from pyinfra.api import Host, StringCommand

from gpufleet.host.asking import frame_command, framed_answer
from gpufleet.host.operation import Commands
from gpufleet.host.shell import script_command
from gpufleet.host.sudo import run_on_host
from gpufleet.run.last_line import LastLine

# before a command: limits its seconds, if the host has `timeout`
READ_TIMEOUT = "$(command -v timeout >/dev/null && echo timeout 2)"


def log_progress(command: StringCommand) -> Commands:
    """Run the command while the progress shows the last line of the logs."""
    # `host` is pyinfra's proxy for the current host, which other greenlets do not have
    itself, began = host.state.inventory.get_host(host.name), time.monotonic()
    with LastLine(itself, lambda: _last_lines(itself, began)).shown():
        yield command


def _last_lines(host: Host, began: float) -> str:
    """The last lines since `began`, read as the login user, because sudo would log each read."""
    since = script_command("packages/last_line", str(int(time.monotonic() - began)))
    _, output = run_on_host(host, frame_command(StringCommand(READ_TIMEOUT, since)))
    return "\n".join(framed_answer(output.stdout_lines) or [])
