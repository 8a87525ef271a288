"""A host that accepts connections while its sshd hangs."""

from __future__ import annotations

import socket

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.connectors.ssh import SSHConnector

from gpufleet.run import connection


def why(port: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Why a host at that port of this machine is not reached."""
    monkeypatch.setattr(SSHConnector, "connect", SSHConnector.connect)  # restored afterwards
    monkeypatch.setattr(connection, "_PROMPTLY", 0.8)
    connection.stop_alone()
    connection.quiet_paramiko()
    where = {"ssh_hostname": "127.0.0.1", "ssh_port": port, "ssh_password": "unused"}
    inventory = Inventory((["one"], where), {})
    host = State(inventory, Config(CONNECT_TIMEOUT=1)).inventory.get_host("one")
    host.connect()
    assert not host.connected
    return connection.explain_unreached(host).message


def test_an_sshd_that_says_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # the kernel accepts
        port = server.getsockname()[1]
        said = why(port, monkeypatch)
    assert f"port {port} accepted the connection, but sshd sent no banner within 1 s" in said


def test_one_that_refuses_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert "no banner" not in why(port, monkeypatch)
