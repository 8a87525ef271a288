"""SSH servers on loopback, by paramiko: they run commands and forward connections."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import paramiko

CHUNK = 65536
Address = tuple[str, int]


@dataclass
class Server:
    """An SSH server. `users`: the users that logged in. `forwarded`: the targets of forwarded
    connections."""

    key: paramiko.PKey
    listener: socket.socket
    users: list[str] = field(default_factory=list)
    forwarded: list[Address] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    @property
    def known(self) -> str:
        """Its line in a file of known hosts."""
        return f"[127.0.0.1]:{self.port} {self.key.get_name()} {self.key.get_base64()}\n"

    def serve(self) -> None:
        with suppress(OSError):  # the test is over
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._session, args=(client,), daemon=True).start()

    def _session(self, client: socket.socket) -> None:
        transport, session = paramiko.Transport(client), Session(self)
        transport.add_server_key(self.key)
        with suppress(paramiko.SSHException, EOFError):  # the client left
            transport.start_server(server=session)
            while transport.is_active():
                channel = transport.accept(1)
                target = session.targets.pop(channel.get_id(), None) if channel else None
                if channel and target:
                    for ends in ((channel, target), (target, channel)):
                        threading.Thread(target=_pump, args=ends, daemon=True).start()


class Session(paramiko.ServerInterface):
    """Permissions of a connection: log in with any key, run commands, forward connections."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.targets: dict[int, socket.socket] = {}

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self.server.users.append(username)
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_direct_tcpip_request(
        self, chanid: int, origin: Address, destination: Address
    ) -> int:
        self.server.forwarded.append(destination)
        self.targets[chanid] = socket.create_connection(destination)
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        threading.Thread(target=_run, args=(channel, command.decode()), daemon=True).start()
        return True


def _pump(source: socket.socket | paramiko.Channel, sink: socket.socket | paramiko.Channel) -> None:
    with suppress(OSError):
        while data := source.recv(CHUNK):
            sink.sendall(data)
    sink.close()


def _run(channel: paramiko.Channel, command: str) -> None:
    # The thread that confirms the command also reads the client's answer, so the answer shows that
    # the command is confirmed. If a command ends before that, the client sees a closed channel.
    channel.get_transport().global_request("confirmed", wait=True)
    done = subprocess.run(
        ["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    channel.sendall(done.stdout)
    channel.sendall_stderr(done.stderr)
    channel.send_exit_status(done.returncode)
    channel.close()


@contextmanager
def ssh_server() -> Iterator[Server]:
    """Start a server with a new key at a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(paramiko.ECDSAKey.generate(), listener)
        threading.Thread(target=server.serve, daemon=True).start()
        yield server
