"""Alerts of a Prometheus that keep a run from the next host."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.upgrade.operations import alert_gate, loop
from gpufleet.upgrade.operations.alert_gate import QUERY, alerts_of, firing_alerts
from gpufleet.upgrade.settings import load_upgrade_settings
from tests.fakes.upgrade_fleet import World, fleet_of

pytestmark = pytest.mark.claim("An upgrade waits for alerts of a Prometheus to end.", level=1)


def answer(*names: str, **more: Any) -> bytes:
    result = [{"metric": {"alertname": name, "alertstate": "firing"}} for name in names]
    return json.dumps({"status": "success", "data": {"result": result}, **more}).encode()


def test_alerts_that_are_not_ignored() -> None:
    found = firing_alerts(
        answer("Watchdog", "NodeDown", "NodeDown", "WatchdogLate"), "Watchdog|Info.*"
    )
    assert found == ("NodeDown", "WatchdogLate")
    assert firing_alerts(answer("a\nb\x1b[2J"), "")[0].isprintable()


def about(**labels: str) -> bytes:
    result = [{"metric": {"alertname": "Down", "alertstate": "firing", **labels}}]
    return json.dumps({"status": "success", "data": {"result": result}}).encode()


@pytest.mark.parametrize(
    "labels",
    [{"node": "gpu-1"}, {"instance": "192.0.2.9:9400"}, {"instance": "GPU-1:9100"},
     {"instance": "[2001:db8::9]:9100"}, {"instance": "192.0.2.1:8080", "node": "gpu-1"}],
)  # fmt: skip
def test_alerts_about_hosts_out_of_service_do_not_count(labels: dict[str, str]) -> None:
    away = ("gpu-1", "192.0.2.9", "2001:db8::9")
    assert firing_alerts(about(**labels), "", away) == ()
    assert firing_alerts(about(**labels), "") == ("Down",)
    assert firing_alerts(about(**labels), "", ("gpu-2", "gpu")) == ("Down",)


def test_counts_of_targets_and_pods_do_not_count_while_a_host_is_out() -> None:
    """With one of three nodes out, a third of the exporters is down. Alerts about work count."""
    found = answer("TargetDown", "KubeDaemonSetRolloutStuck", "KubePodNotReady")
    assert firing_alerts(found, "", ("gpu-1",)) == ("KubePodNotReady",)
    assert firing_alerts(found, "") == (
        "KubeDaemonSetRolloutStuck",
        "KubePodNotReady",
        "TargetDown",
    )


def test_severity_info_and_rules_that_say_so_do_not_count() -> None:
    """The query leaves such alerts out, as users of kured's --prometheus-url do."""
    assert 'severity!="info"' in QUERY
    assert 'upgrade!="ignore"' in QUERY


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"{", b'{"status": "error", "error": "bad"}', b'{"status": "success"}',
     b'{"status": "success", "data": {"result": [1]}}', b"[" * 100_000],
)  # fmt: skip
def test_what_is_no_answer(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        firing_alerts(text, "")


@pytest.mark.parametrize(
    "url", ["prometheus:9090", "file:///etc/passwd", "http://", "http://a:b@c"]
)
def test_addresses_that_are_refused(url: str) -> None:
    assert load_upgrade_settings({"upgrade_alerts": url})[0] is None


def test_names_that_are_refused() -> None:
    assert load_upgrade_settings({"upgrade_alerts_ignored": "("})[0] is None


@pytest.fixture
def prometheus() -> Iterator[tuple[str, dict[str, Any]]]:
    """The URL of a fake Prometheus, and its answer, which a test may change."""
    says: dict[str, Any] = {"status": 200, "body": answer("NodeDown"), "asked": []}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            says["asked"].append(self.path)
            self.send_response(says["status"])
            self.end_headers()
            self.wfile.write(says["body"])

        def log_message(self, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", says
    server.shutdown()
    server.server_close()


def test_a_prometheus_is_asked(prometheus: tuple[str, dict[str, Any]]) -> None:
    url, says = prometheus
    assert alerts_of(url, "Watchdog") == ("NodeDown",)
    asked = urlsplit(says["asked"][0])
    assert (asked.path, parse_qs(asked.query)) == ("/api/v1/query", {"query": [QUERY]})
    says["status"] = 503
    assert alerts_of(url, "") == (f"{url} has no answer: status 503",)


def test_one_that_is_away_counts_as_an_alert() -> None:
    found = alerts_of("http://127.0.0.1:1", "")
    assert len(found) == 1
    assert found[0].startswith("http://127.0.0.1:1 has no answer")


def test_heads_without_an_end_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then keeps the timeout of a socket from firing."""
    monkeypatch.setattr(alert_gate, "ALERTS", replace(alert_gate.ALERTS, seconds=1))
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            connection.settimeout(30)
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while not over.wait(0.05):
                    connection.sendall(b"x: y\r\n")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        [found] = alerts_of(f"http://127.0.0.1:{server.getsockname()[1]}", "")
        over.set()
        thread.join(30)
    assert "has no answer" in found


def test_it_is_asked_only_before_a_host_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[str]] = []
    answers = [("A",), ("A",), ()]
    monkeypatch.setattr(loop, "addresses_of", lambda name: [f"address of {name}"])
    monkeypatch.setattr(
        loop, "alerts_of", lambda url, ignored, away: asked.append(away) or answers.pop(0)
    )
    world = World(fleet_of("h"), UpgradeSettings(alerts="http://p"))
    assert world.carried_out() == "finished"
    assert asked == [set()] * 3
    assert any("end of alerts: A" in line for line in world.said)


def test_hosts_out_of_service_are_named_to_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alerts about a host that is cordoned or reboots are expected, so the gate knows its name."""
    monkeypatch.setattr(loop, "addresses_of", lambda name: [f"address of {name}"])
    said: list[set[str]] = []
    monkeypatch.setattr(loop, "alerts_of", lambda url, ignored, away: said.append(away) or ())
    run = World(fleet_of("h"), UpgradeSettings(alerts="http://p")).started()
    assert loop._alerts(run, {"h"}) == ()
    assert said == [{"h", "address of h"}]
