"""Hosts made of facts that the commands of `doctor --fix` change, and their clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyinfra.connectors.util import CommandOutput, OutputLine

from gpufleet.cli import diagnosis, doctor, fixing, main, question
from gpufleet.core.inventory import choose_hosts
from gpufleet.core.live import QUIET
from gpufleet.facts.model import NodeFacts
from gpufleet.host import asking, sudo
from gpufleet.host import lock as host_lock
from gpufleet.status.models import SeenHost
from gpufleet.verify.inventory import Target
from tests.unit.status.fleets import NOW, seen, silent

Change = Callable[[NodeFacts], NodeFacts]


@dataclass
class FixedFleet:
    """`fleet.run(words…)`: the command on these hosts. `answer`: typed on a terminal, None without
    one."""

    hosts: dict[str, NodeFacts]
    monkeypatch: pytest.MonkeyPatch
    effect: Change = lambda facts: facts  # what a command does to a host
    refusal: str = ""  # what a command prints before it fails
    holder: str = ""  # of the lock of each host
    dies: bool = False  # the hosts do not answer after a command
    answer: str | None = None
    ran: list[tuple[str, str]] = field(default_factory=list)  # host, command
    clusters: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)  # of each cluster

    def __post_init__(self) -> None:
        patch = self.monkeypatch.setattr
        self.monkeypatch.delenv(QUIET, raising=False)
        self.monkeypatch.setenv("COLUMNS", "300")
        patch(doctor, "time", SimpleNamespace(time=lambda: NOW))
        for module in (diagnosis, fixing):
            patch(module, "read_hosts_and_clusters", self._read)
            patch(module, "read_clusters", lambda inventory, names: self._parts(names))
        patch(sudo, "run_on_host", self._run)
        patch(host_lock, "_hold", self._hold)
        patch(host_lock, "_content", lambda host: "" if self.holder else self._lock(host))
        for module in (asking, host_lock):
            patch(module, "privilege_arguments", lambda host: {})
        terminal = SimpleNamespace(isatty=lambda: self.answer is not None)
        patch(question, "sys", SimpleNamespace(stdin=terminal))

    def run(self, *words: str) -> Result:
        command = ["doctor", "inv.py", *words]
        return CliRunner().invoke(main, command, input=self.answer)

    def _parts(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: self.clusters[name] for name in names}

    def _read(
        self,
        inventory: str,
        limit: Sequence[str],
        *,
        health: bool,
        before: Any = None,
        more: Any = None,
    ) -> tuple[list[SeenHost], list[Target]]:
        groups = dict.fromkeys(self.hosts, ("gpu_nodes",))
        every = {**groups, **dict.fromkeys(self.clusters, ("gpu_cluster",))}
        names = choose_hosts(every, limit)
        chosen = [name for name in names if name in self.hosts]
        for name in chosen if before else ():
            before(SimpleNamespace(name=name, connector_data={}, connected=True, connector=None))
        found = [
            silent(name) if self.dies and before else seen(name, self.hosts[name])
            for name in chosen
        ]
        chosen = [name for name in names if name in self.clusters]
        return found, [Target(name, ("gpu_cluster",), dict(self.data)) for name in chosen]

    def _run(self, host: Any, command: Any, **how: Any) -> tuple[bool, CommandOutput]:
        self.ran.append((host.name, command.get_raw_value()))
        if self.refusal:
            return False, CommandOutput([OutputLine("stderr", self.refusal)])
        self.hosts[host.name] = self.effect(self.hosts[host.name])
        return True, CommandOutput([])

    def _hold(self, host: Any, *_: Any) -> host_lock.Ended:
        """The process that holds the lock: at once refused, or there to the end."""
        return ([f"held {self.holder}"] if self.holder else ["."], [])

    def _lock(self, host: Any) -> str:
        lock = host_lock.lock_of(host)
        return lock.text if lock else ""
