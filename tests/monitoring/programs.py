"""A real Prometheus, from this machine's distribution, on addresses of this machine."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from gpufleet_sandbox.cluster.processes import Process, end, free_ports, start
from gpufleet_sandbox.debian import debian_program
from gpufleet_sandbox.waiting import wait_until

SECONDS = 900


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running Prometheus; nothing outside of this machine reaches it."""

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


def start_prometheus(
    folder: Path,
    config: str,
    data: Path | None = None,
    *,
    program: Path | None = None,
    environment: Mapping[str, str] | None = None,
    address: str = "127.0.0.1",
    port: int = 0,
) -> tuple[Process, Prometheus]:
    """Start Prometheus with files in `folder` and `data` as from `write_blocks`. The caller ends
    the process.

    It listens on `address`, on a free port unless `port` is set. `program`: another program than
    the distribution's.
    """
    (folder / "prometheus.yml").write_text(config)
    port = port or free_ports(1)[0]
    data = data or folder / "data"
    flags = {
        "config.file": folder / "prometheus.yml",
        "storage.tsdb.path": data,
        "storage.tsdb.retention.time": "10y",
        "web.listen-address": f"{address}:{port}",
    }
    words = [f"--{name}={value}" for name, value in flags.items()]
    log = folder / "prometheus.log"
    program = program or debian_program("prometheus", "prometheus")
    process = start("prometheus", [program, *words], log, environment or {})

    def answers() -> bool:
        assert process.alive, log.read_text()
        with socket.socket() as probe:
            return probe.connect_ex((address, port)) == 0

    url = f"http://{address}:{port}"
    with ExitStack() as failed:
        failed.callback(end, [process])
        assert wait_until(answers, SECONDS), log.read_text()
        assert wait_until(lambda: requests.get(f"{url}/-/ready", timeout=5).ok, SECONDS)
        failed.pop_all()
    return process, Prometheus(url, data)


def write_blocks(folder: Path, openmetrics: Iterable[str]) -> Path:
    """Blocks of a Prometheus from lines of OpenMetrics text, made by promtool."""
    text = folder / "metrics.om"
    with text.open("w") as file:
        file.writelines(openmetrics)
    words = [debian_program("prometheus", "promtool"), "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run([*words, text, folder / "data"], check=True, capture_output=True)
    return folder / "data"
