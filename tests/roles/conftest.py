"""Operations on pyinfra's fake connector: the commands for a host, without a host."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_bench import ClusterBench
from parts import Controlled, site_in
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operations import run_ops

Answers = dict[Any, Any]


class FakeHost:
    """One fake host after a run: the commands that it was sent, and whether it failed."""

    def __init__(self, state: State) -> None:
        (self._host,) = state.inventory
        self._state = state

    @property
    def commands(self) -> list[str]:
        return [str(command) for command in self._host.connector.executed_commands]

    @property
    def failed(self) -> bool:
        return self._host in self._state.failed_hosts


@pytest.fixture
def carry_out() -> Callable[..., FakeHost]:
    """Run a function that calls operations on one fake host; `answers`: output by command."""

    def run(function: Callable[[], None], answers: Answers | None = None, **data: Any) -> FakeHost:
        host_data = {
            "fake_delay": 0.0,
            "fake_delay_jitter": 0.0,
            "fake_responses": answers or {},
            **data,
        }
        state = State(Inventory((["@fake/host"], host_data), {}), Config())
        connect_all(state)
        add_deploy(state, function)
        try:
            run_ops(state)
        except PyinfraError:  # when no hosts remain
            assert state.failed_hosts
        return FakeHost(state)

    return run


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ClusterBench:
    """A cluster in memory."""
    return ClusterBench(monkeypatch)


@pytest.fixture
def site(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder in which workers leave a trace, and where the report goes."""
    return site_in(tmp_path, tmp_path_factory.mktemp("fake"), monkeypatch)


@pytest.fixture
def controlled(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Controlled]:
    """Starts runs in `site` that are processes of their own."""
    fake = os.environ["PYTHONPATH"]
    before = fake.partition(os.pathsep)[2]
    monkeypatch.setenv("PYTHONPATH", before)
    runs = Controlled(fake)
    yield runs
    runs.end()
