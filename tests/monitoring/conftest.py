"""The real programs of a monitoring stack, from this machine's distribution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpufleet_sandbox.cluster.processes import Process, end
from gpufleet_sandbox.debian import debian_program
from tests.monitoring.fleet_metrics import openmetrics
from tests.monitoring.programs import SECONDS, Prometheus, start_prometheus, write_blocks

__all__ = ["SECONDS", "Prometheus"]  # for the tests


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
    processes: list[Process] = []

    def run(config: str, data: Path | None = None) -> Prometheus:
        process, found = start_prometheus(tmp_path_factory.mktemp("prometheus"), config, data)
        processes.append(process)
        return found

    yield run
    end(processes)


@pytest.fixture(scope="session")
def fleet_blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hours of the fleet of fleet.py."""
    return write_blocks(tmp_path_factory.mktemp("fleet"), openmetrics())


@pytest.fixture(scope="module")
def fleet_server(run_prometheus: Callable[..., Prometheus], fleet_blocks: Path) -> Prometheus:
    """A Prometheus that holds them."""
    return run_prometheus("global: {scrape_interval: 1m}\n", data=fleet_blocks)
