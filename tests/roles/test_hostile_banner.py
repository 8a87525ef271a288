"""Text that an SSH server sends before authentication is escaped and printed on one line."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import paramiko
import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.connectors.ssh import SSHConnector

from gpufleet.run import connection

HOSTILE = "\x1b]0;pwned\x07\x1b[2J\u202e"


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server that sends a hostile SSH identification and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(f"SSH-{HOSTILE}-x\r\n".encode())
                peer.recv(4096)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


def unreached(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, **data: Any
) -> tuple[str, str]:
    """The reason why a host is not reached, and the output of pyinfra."""
    monkeypatch.setattr(SSHConnector, "connect", SSHConnector.connect)  # restored afterwards
    connection.stop_alone()
    connection.quiet_paramiko()
    where = {"ssh_hostname": "127.0.0.1", "ssh_allow_agent": False, "ssh_look_for_keys": False}
    inventory = Inventory((["one"], {**where, **data}), {})
    host = State(inventory, Config(CONNECT_TIMEOUT=5)).inventory.get_host("one")
    host.connect()
    assert not host.connected
    printed = [record.getMessage() for record in caplog.records if "[one]" in record.getMessage()]
    return connection.explain_unreached(host).message, "\n".join(printed)


def test_a_hostile_identification_is_visible_and_one_line(
    port: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    why, printed = unreached(monkeypatch, caplog, ssh_port=port, ssh_password="unused")
    for text in (why, printed):
        assert r"\x1b]0;pwned\x07\x1b[2J\u202e" in text
        assert not set(text) & set("\x07\u202e\r\n")
        assert "\x1b]" not in text
        assert "\x1b[2J" not in text


def test_so_is_any_other_error_of_a_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def connect(connector: SSHConnector) -> None:
        raise paramiko.BadAuthenticationType(f"no {HOSTILE}\nGF999 two: forged", [HOSTILE])

    monkeypatch.setattr(connection, "_connect", connect)
    why, printed = unreached(monkeypatch, caplog)
    assert why.isprintable()
    assert "\nGF999" not in printed
    assert "\x1b]" not in printed
