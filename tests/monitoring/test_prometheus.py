"""The Prometheus that the other tests here ask."""

from __future__ import annotations

from collections.abc import Callable

from gpufleet_sandbox.waiting import wait_until
from tests.monitoring.conftest import SECONDS, Prometheus


def test_it_scrapes_itself(run_prometheus: Callable[..., Prometheus]) -> None:
    server = run_prometheus("global: {scrape_interval: 1s}\n")
    assert server.query("vector(1)")[0]["value"][1] == "1"
    assert server.get("targets")["activeTargets"] == []
    port = server.url.rpartition(":")[2]
    job = (
        f"scrape_configs: [{{job_name: own, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]"
    )
    again = run_prometheus(f"global: {{scrape_interval: 1s}}\n{job}\n")
    assert wait_until(lambda: bool(again.query("up{job='own'} == 1")), SECONDS)
