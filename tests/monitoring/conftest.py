"""The real programs of a monitoring stack, from this machine's distribution."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from gpufleet.sandbox.cluster.processes import end, free_ports, start
from gpufleet.sandbox.debian import debian_program
from gpufleet.sandbox.waiting import wait_until

SECONDS = 60


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running Prometheus on the loopback interface."""

    url: str
    data: Path

    def get(self, path: str, **parameters: str) -> Any:
        """The `data` of an answer: `get("query", query="up", time="1700000000")`."""
        answer = requests.get(f"{self.url}/api/v1/{path}", params=parameters, timeout=30)
        body = answer.json()
        assert body["status"] == "success", body
        return body["data"]

    def query(self, expression: str, at: float | None = None) -> list[Any]:
        """The series of an instant query, each {"metric": labels, "value": [time, text]}."""
        when = {} if at is None else {"time": str(at)}
        return list(self.get("query", query=expression, **when)["result"])


@pytest.fixture(scope="session")
def promtool() -> Path:
    return debian_program("prometheus", "promtool")


@pytest.fixture(scope="session")
def amtool() -> Path:
    return debian_program("prometheus-alertmanager", "amtool")


@pytest.fixture(scope="module")
def run_prometheus(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Prometheus]]:
    """`run_prometheus(config, data=folder)`: a real Prometheus; ended with the module's tests.

    `config` is the text of prometheus.yml; `data` a folder of blocks that promtool made.
    """
    processes = []

    def run(config: str, data: Path | None = None) -> Prometheus:
        folder = tmp_path_factory.mktemp("prometheus")
        (folder / "prometheus.yml").write_text(config)
        [port] = free_ports(1)
        data = data or folder / "data"
        flags = {
            "config.file": folder / "prometheus.yml",
            "storage.tsdb.path": data,
            "storage.tsdb.retention.time": "10y",
            "web.listen-address": f"127.0.0.1:{port}",
        }
        words = [f"--{name}={value}" for name, value in flags.items()]
        log = folder / "prometheus.log"
        program = debian_program("prometheus", "prometheus")
        process = start("prometheus", [program, *words], log, {})
        processes.append(process)

        def answers() -> bool:
            assert process.alive, log.read_text()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        url = f"http://127.0.0.1:{port}"
        assert wait_until(answers, SECONDS), log.read_text()
        assert wait_until(lambda: requests.get(f"{url}/-/ready", timeout=5).ok, SECONDS)
        return Prometheus(url, data)

    yield run
    end(processes)
