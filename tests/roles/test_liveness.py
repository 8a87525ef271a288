"""A host that stops responding in a step, on transports that respond or do not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import gevent
import pytest
from paramiko import SSHException

from gpufleet.host import liveness
from gpufleet.host.trouble import explain_failed_command


class Packetizer:
    def read_message(self) -> str:
        return "a packet"


class Transport:
    """An SSH connection; its server responds after each of `delays`, then at once."""

    def __init__(self, *delays: float, error: Exception | None = None) -> None:
        self.delays, self.error = list(delays), error
        self.active, self.asked = True, 0
        self.packetizer = Packetizer()

    def is_active(self) -> bool:
        return self.active

    def global_request(self, kind: str, *, wait: bool) -> None:
        self.asked += 1
        if self.error:
            raise self.error
        gevent.sleep(self.delays.pop(0) if self.delays else 0)

    def close(self) -> None:
        self.active = False


def watched(transport: Transport, seconds: float) -> Any:
    """A host with this connection, watched for some seconds."""
    client = SimpleNamespace(get_transport=lambda: transport)
    host: Any = SimpleNamespace(
        name="gpu-1", print_prefix="[gpu-1] ", connected=True, connector_data={},
        connector=SimpleNamespace(client=client),
    )  # fmt: skip
    host.state = SimpleNamespace(inventory=SimpleNamespace(get_host={"gpu-1": host}.get))
    busy = SimpleNamespace(**vars(host))  # pyinfra's `host`, which means no host later on
    liveness.watch_connection(cast(Any, busy))
    del busy.connector
    liveness.watch_connection(host)  # as a second gathering of facts does
    gevent.sleep(seconds)
    host.connector_data[liveness._WATCH].kill()
    return host


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "LIVENESS_INTERVAL", 0.05)
    monkeypatch.setattr(liveness, "LIVENESS_TIMEOUT", 0.25)


def test_a_host_that_sends_anything_is_alive() -> None:
    """Its answer may be lost under load, while steps go on over the same connection."""
    transport = Transport(60)

    def send() -> None:
        while True:
            gevent.sleep(0.02)
            transport.packetizer.read_message()

    sender = gevent.spawn(send)
    host = watched(transport, 0.6)
    sender.kill()
    assert transport.active
    assert liveness._LOST not in host.connector_data


@pytest.mark.claim(
    "A host that hangs in a step is given up, and the others go on.",
    level=2,
)
def test_a_host_that_hangs_is_lost_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    transport = Transport(60)
    host = watched(transport, 0.6)
    assert not transport.active
    finding = explain_failed_command(host, [], "in the step 'Install'")
    assert finding.code == "GF504"
    assert "no response for 0 seconds" in finding.message
    assert "[gpu-1] no response for 0 s: waiting up to" in caplog.text


def test_a_host_that_is_slow_for_a_while_is_kept() -> None:
    transport = Transport(0.15, 0.15)
    watched(transport, 0.6)
    assert transport.active
    assert transport.asked >= 3


def test_a_connection_that_ends_while_it_is_asked_is_no_fault_of_ours(
    capsys: pytest.CaptureFixture[str],
) -> None:
    watched(Transport(error=SSHException("not active")), 0.2)
    assert "Traceback" not in capsys.readouterr().err
