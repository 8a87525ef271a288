"""A failed connection to a host: reported with its cause, and only for that host."""

from __future__ import annotations

import getpass
import io
import socket

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.exceptions import ConnectError
from pyinfra.connectors.ssh import SSHConnector

from gpufleet.run import connection


def test_a_key_whose_passphrase_nobody_can_type_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(connector: SSHConnector) -> None:
        try:
            getpass._raw_input(stream=io.StringIO(), input=io.StringIO())  # type: ignore[attr-defined]
        except EOFError as error:
            raise ConnectError(f"EOF error ({error})")  # noqa: B904 - as pyinfra does

    monkeypatch.setattr(connection, "_connect", connect)
    monkeypatch.setattr(SSHConnector, "connect", SSHConnector.connect)  # restored afterwards
    connection.stop_alone()
    state = State(Inventory((["one"], {}), {}), Config())
    host = state.inventory.get_host("one")
    host.connect()
    assert not host.connected
    assert "set ssh_key_password" in connection.why_unreached(host)


def test_a_silent_connection_seldom_wakes_up() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as sock,
    ):
        connection.nodelay_transport(sock)
        assert sock.gettimeout() == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
