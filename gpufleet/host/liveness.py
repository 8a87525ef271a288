"""Reports hosts that stop responding while the run waits, and gives up on them after a minute.

A machine that hangs keeps its connection open, because its kernel may still confirm packets. So the
SSH server itself is asked, as OpenSSH's client does with ServerAliveInterval.
"""

from __future__ import annotations

import time
from typing import Any

import gevent
from gevent import Greenlet
from paramiko import SSHException, Transport
from pyinfra import logger
from pyinfra.api import Host

LIVENESS_INTERVAL = 15.0  # seconds between two questions, and between two lines of progress
LIVENESS_TIMEOUT = 45.0  # seconds that one answer may take
_WATCH, _LOST = "gpufleet_watch", "gpufleet_silent"  # in pyinfra's dictionary of a connection
CUT = (SSHException, OSError, EOFError)  # errors of a connection that ends during use


def watch_connection(host: Host) -> None:
    """Watch a host from now on, and close its connection if it does not respond. SSH only."""
    if _transport(host) is not None and _WATCH not in host.connector_data:
        # `host` may be pyinfra's proxy of the current host, which greenlets cannot use
        itself = host.state.inventory.get_host(host.name)
        host.connector_data[_WATCH] = gevent.spawn(_watch, itself)


def why_lost(host: Host, otherwise: str = "the host closed it") -> str:
    """Why the connection to a host was lost, or `otherwise` if this module did not close it."""
    seconds = host.connector_data.get(_LOST)
    if seconds is None:
        return otherwise
    return f"the host hangs or is disconnected: no response for {seconds:.0f} seconds"


def forget_loss(host: Host) -> None:
    """Forget why the last connection was lost, before a new connection."""
    host.connector_data.pop(_LOST, None)


def _watch(host: Host) -> None:
    """Ask the host until the process ends. After a reboot, ask over the new connection."""
    while True:
        gevent.sleep(LIVENESS_INTERVAL)
        transport = _transport(host)
        if transport is not None and transport.is_active():
            _await_answer(host, transport)


def _await_answer(host: Host, transport: Transport) -> None:
    """Return when any packet of the host has arrived, as OpenSSH's client counts it: under load, an
    answer may be lost on a connection that works."""
    heard = _count_packets(transport)
    began = time.monotonic()
    asked: Greenlet = gevent.spawn(_ask, transport)
    while True:
        asked.join(timeout=LIVENESS_INTERVAL)
        silent = time.monotonic() - began
        if asked.ready() or heard[0]:
            asked.kill(block=False)
            return
        if silent >= LIVENESS_TIMEOUT:
            break
        logger.warning(
            f"{host.print_prefix}no response for {silent:.0f} s: waiting up to "
            f"{LIVENESS_TIMEOUT - silent:.0f} s more for this host"
        )
    host.connector_data[_LOST] = silent
    asked.kill(block=False)
    transport.close()


def _count_packets(transport: Transport) -> list[int]:
    """The number of packets that the host sends from now on, as the only item of a list."""
    heard = [0]
    packetizer = transport.packetizer
    read = type(packetizer).read_message

    def read_message() -> Any:
        message = read(packetizer)
        heard[0] += 1
        return message

    packetizer.read_message = read_message  # type: ignore[method-assign]
    return heard


def _ask(transport: Transport) -> None:
    """Return when the SSH server has responded in any way, or the connection is closed."""
    try:
        transport.global_request("keepalive@openssh.com", wait=True)
    except CUT as error:
        logger.debug(f"the connection ended while the host was asked: {error}")


def _transport(host: Host) -> Transport | None:
    client = getattr(host.connector, "client", None)
    return client.get_transport() if client is not None else None
