"""A load balancer for TCP, as a cluster of several control planes has one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

CHUNK = 65536
CONNECT_SECONDS = 1.0


class Forwarder:
    """Forwards each connection to the first of its targets that accepts one."""

    def __init__(self, address: str) -> None:
        self._listener = socket.create_server((address, 0))
        self.targets: Sequence[tuple[str, int]] = ()
        self._last: tuple[str, int] | None = None  # tried first: one that is lost costs a second
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def endpoint(self) -> str:
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = self._connected()
        if server is None:
            client.close()
            return
        other = threading.Thread(target=_pump, args=(server, client), daemon=True)
        other.start()
        _pump(client, server)
        other.join()
        client.close()
        server.close()

    def _connected(self) -> socket.socket | None:
        known = [self._last] if self._last in self.targets else []
        for target in (*known, *(each for each in self.targets if each not in known)):
            assert target
            with suppress(OSError):
                server = socket.create_connection(target, CONNECT_SECONDS)
                server.settimeout(None)
                self._last = target
                return server
        return None


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Copy until one side ends."""
    with suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def forwarder(address: str) -> Iterator[Forwarder]:
    """A forwarder on a free port of an address of this machine."""
    made = Forwarder(address)
    try:
        yield made
    finally:
        made.close()
