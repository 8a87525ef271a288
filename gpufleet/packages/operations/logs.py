"""The logs of package managers and DKMS, shown while a transaction runs."""

from __future__ import annotations

import time

from pyinfra import host
from pyinfra.api import Host, StringCommand

from gpufleet.host.asking import answer, framed
from gpufleet.host.operation import Commands
from gpufleet.host.shell import script
from gpufleet.host.sudo import run
from gpufleet.run.last_line import LastLine


def logged(command: StringCommand) -> Commands:
    """The same command; progress shows the last line of the logs while it runs."""
    # `host` is pyinfra's proxy of the current host, which other greenlets do not have
    itself, began = host.state.inventory.get_host(host.name), time.monotonic()
    with LastLine(itself, lambda: _last_line(itself, began)).shown():
        yield command


def _last_line(host: Host, began: float) -> str:
    """The last line since `began`, read as the login user: sudo would log each read."""
    since = script("packages/last_line", str(int(time.monotonic() - began)))
    _, output = run(host, framed(since))
    return "".join((answer(output.stdout_lines) or [])[-1:])
