"""Operations on pyinfra's fake connector: the commands for a host, without a host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cluster_bench import ClusterBench
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
