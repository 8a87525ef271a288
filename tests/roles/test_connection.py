"""A failed connection to a host: reported with its cause, and only for that host."""

from __future__ import annotations

import errno
import io
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import paramiko
import pytest
from paramiko.hostkeys import HostKeyEntry
from paramiko.ssh_exception import NoValidConnectionsError
from pyinfra.api import Config, Inventory, State
from pyinfra.api.exceptions import ConnectError
from pyinfra.connectors import ssh_util
from pyinfra.connectors.ssh import SSHConnector
from ssh_servers import ssh_server

from gpufleet.core.findings import Finding
from gpufleet.run import connection


def unreached(monkeypatch: pytest.MonkeyPatch, fail: Callable[[], object], said: str) -> str:
    """Why a host is not reached where `fail` raises, of which pyinfra says `said`."""

    def connect(connector: SSHConnector) -> None:
        try:
            fail()
        except (EOFError, OSError) as error:
            raise ConnectError(f"{said} ({error})")  # noqa: B904 - as pyinfra does

    monkeypatch.setattr(connection, "_connect", connect)
    monkeypatch.setattr(SSHConnector, "connect", SSHConnector.connect)  # restored afterwards
    connection.stop_alone()
    host = State(Inventory((["one"], {}), {}), Config()).inventory.get_host("one")
    host.connect()
    assert not host.connected
    return connection.explain_unreached(host).message


def raises(error: Exception) -> Callable[[], object]:
    def fail() -> None:
        raise error

    return fail


def test_a_key_whose_passphrase_nobody_can_type_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def prompt() -> object:
        return ssh_util.getpass("Enter password for private key: ")

    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert "set ssh_key_password" in unreached(monkeypatch, prompt, "EOF error")


def test_another_end_of_a_file_is_not_taken_for_a_passphrase(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    why = unreached(monkeypatch, raises(EOFError("banner")), "EOF error")
    assert "EOF error (banner)" in why


def test_a_refused_connection_says_so_and_names_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {("10.0.0.7", 22): ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")}
    why = unreached(monkeypatch, raises(NoValidConnectionsError(refused)), "Could not connect")
    assert why.startswith("Connection failed: Connection refused (port 22). ")


def test_a_line_that_paramiko_cannot_read_hides_no_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A line of a certificate authority, and one that is damaged."""
    monkeypatch.setattr(HostKeyEntry, "from_line", HostKeyEntry.from_line)  # restored afterwards
    monkeypatch.setattr(SSHConnector, "connect", SSHConnector.connect)
    connection.stop_alone()
    key = paramiko.ECDSAKey.generate()
    known = f"{key.get_name()} {key.get_base64()}"
    file = tmp_path / "known_hosts"
    file.write_text(
        f"@cert-authority *.example.com {known}\nbroken {key.get_name()} A\none {known}\n"
    )
    assert paramiko.HostKeys(str(file)).check("one", key)


def test_a_known_rsa_key_is_asked_for_by_its_sha2_signatures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patched = (paramiko.Transport, "preferred_keys"), (SSHConnector, "connect")
    for where, name in patched:
        monkeypatch.setattr(where, name, getattr(where, name))  # restored afterwards
    connection.stop_alone()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as sock,
    ):
        transport = paramiko.Transport(sock)
        options = transport.get_security_options()
        options.key_types = ["ssh-rsa", "ssh-ed25519", "rsa-sha2-512", "rsa-sha2-256"]
        assert transport.preferred_keys[:3] == ("rsa-sha2-512", "rsa-sha2-256", "ssh-rsa")
        options.key_types = ["ssh-ed25519", "ssh-rsa"]
        assert transport.preferred_keys[0] == "ssh-ed25519"


def test_a_silent_connection_seldom_wakes_up() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as sock,
    ):
        connection.nodelay_transport(sock)
        assert sock.gettimeout() == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    ("refusals", "code", "opens"), [(3, 2, True), (10**6, 2, False), (1, 1, False), (0, 2, True)]
)
def test_a_session_is_refused_while_that_of_the_command_before_ends(
    monkeypatch: pytest.MonkeyPatch, refusals: int, code: int, opens: bool
) -> None:
    asked: list[Any] = []

    def open_session(*args: Any, **how: Any) -> str:
        asked.append((args, how))
        if len(asked) <= refusals:
            raise paramiko.ChannelException(code, "Connect failed")
        return "session"

    transport = SimpleNamespace(open_session=open_session)
    client = SimpleNamespace(get_transport=lambda: transport)
    monkeypatch.setattr(connection, "_connect", lambda connector: None)
    monkeypatch.setattr(connection, "_REFUSED", 0.2)
    monkeypatch.setattr(connection, "_AGAIN", 0.001)
    host = SimpleNamespace(data=SimpleNamespace(dict=dict))
    connector: Any = SimpleNamespace(client=client, host=host)
    connection._connect_or_say_why(connector)
    if opens:
        assert transport.open_session(timeout=7) == "session"
        assert asked == [((), {"timeout": 7})] * (refusals + 1)
    else:
        with pytest.raises(paramiko.ChannelException):
            transport.open_session()
        assert len(asked) > 1 if code == 2 else len(asked) == 1


def reached(monkeypatch: pytest.MonkeyPatch, known: Path, **data: Any) -> Finding | None:
    """Why pyinfra does not reach a host whose key it looks up in `known`, or None if it does."""
    monkeypatch.setattr(SSHConnector, "connect", SSHConnector.connect)  # restored afterwards
    connection.stop_alone()
    keys = {"ssh_known_hosts_file": str(known), "ssh_strict_host_key_checking": "yes"}
    login = {"ssh_user": "one", "ssh_allow_agent": False, "ssh_look_for_keys": False}
    inventory = Inventory((["one"], {**keys, **login, **data}), {})
    host = State(inventory, Config(CONNECT_TIMEOUT=10)).inventory.get_host("one")
    host.connect()
    return None if host.connected else connection.explain_unreached(host)


@pytest.mark.parametrize(("state", "code"), [("unknown", "GF017"), ("changed", "GF018")])
def test_the_key_of_a_host_that_is_not_the_known_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture,
    state: str, code: str,
) -> None:  # fmt: skip
    connection.quiet_paramiko()
    known = tmp_path / "known_hosts"
    with ssh_server() as server:
        other = paramiko.ECDSAKey.generate()
        line = f"[127.0.0.1]:{server.port} {other.get_name()} {other.get_base64()}\n"
        known.write_text(line if state == "changed" else "")
        at = {"ssh_hostname": "127.0.0.1", "ssh_port": server.port, "ssh_password": "unused"}
        found = reached(monkeypatch, known, **at)
        assert found is not None
        assert found.code == code
        assert "of this host " in found.message
        assert "--limit one" in found.remedy
        for key in (server.key, other):
            assert (key.fingerprint in found.message) is (state == "changed")  # type: ignore[attr-defined]
    assert server.users == []
    assert "REMOTE HOST IDENTIFICATION" not in caplog.text
