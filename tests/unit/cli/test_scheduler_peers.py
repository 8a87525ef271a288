"""An address at which something listens that is no scheduler, and one that goes away."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import click
import distributed
import pytest

from gpufleet.cli import scheduled
from gpufleet.cli.scheduled import Scheduled

ENOUGH = 5  # seconds until each of them is refused


@contextmanager
def listener(says: bytes | None) -> Iterator[str]:
    """Its address. It sends that to whoever connects, and waits; None: it hangs up."""
    kept: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answers() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                    if says is None:
                        connection.close()
                        continue
                    kept.append(connection)
                    connection.sendall(says)
                except OSError:
                    return

        threading.Thread(target=answers, daemon=True).start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    for connection in kept:
        connection.close()


@pytest.mark.parametrize(
    "says",
    [
        b"",
        None,
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        struct.pack("<QQ", 8, 3) + b"abc",
        struct.pack("<QQQ", 16, 1, 8) + b"x" * 8,
        struct.pack("<QQQ", 17, 1, 1) + b"\xc1",
    ],
    ids=["silent", "closed", "SSH", "HTTP", "short", "letters", "no message"],
)
def test_what_is_no_scheduler_is_refused_in_time(
    says: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduled, "ANSWER", 1)
    monkeypatch.setattr(distributed, "Client", lambda *_, **__: pytest.fail("a client"))
    began = time.monotonic()
    with listener(says) as address, pytest.raises(click.UsageError, match="No scheduler at") as why:
        Scheduled(address)
    assert time.monotonic() - began < ENOUGH
    assert not why.value.message.endswith(": ")


class Client:
    """One whose scheduler is gone."""

    closed = False
    loop = scheduler = None

    def __init__(self, *words: object, **options: object) -> None: ...

    def ncores(self) -> dict[str, int]:
        raise RuntimeError("gone\x1b[2J")

    def close(self, timeout: float) -> None:
        type(self).closed = True
        raise RuntimeError("gone")


def test_a_scheduler_that_goes_away_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "Client", Client)
    monkeypatch.setattr(scheduled, "_probe", lambda address: None)
    with pytest.raises(click.UsageError) as why:
        Scheduled("tcp://a:1")
    assert why.value.message.startswith("No scheduler at tcp://a:1: gone\\x1b[2J. Start one")
    assert Client.closed


def test_one_that_goes_away_later_costs_no_report() -> None:
    gone = object.__new__(Scheduled)
    gone._client = cast(Any, Client())
    gone.stop()
    gone.close()


def test_a_worker_is_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    with distributed.LocalCluster(
        n_workers=1, processes=False, protocol="tcp", dashboard_address=None
    ) as cluster:
        monkeypatch.setattr(distributed, "Client", lambda *_, **__: pytest.fail("a client"))
        (worker,) = cluster.workers.values()
        with pytest.raises(click.UsageError, match="it is a Worker"):
            Scheduled(worker.address)
