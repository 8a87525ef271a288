"""The hosts of an inventory that are read outside a deploy, by their names and groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import Inventory
from pyinfra.api.exceptions import ConnectError
from pyinfra.api.state import StateStage
from pyinfra.connectors.fake import FakeConnector
from pyinfra.context import ctx_inventory, ctx_state

from gpufleet.core.stopped import Stopped
from gpufleet.facts.model import NodeFacts
from gpufleet.host import gather as gathering
from gpufleet.host.gather import Gathered, GatherProgress, NoSuchHost, gather_facts
from tests.unit.hosts import bare_host

QUICK = {"fake_delay": 0.0, "fake_delay_jitter": 0.0}
NODES: Any = [("@fake/one", {"driver_branch": "580"}), ("@fake/two", {})]
FACTS = bare_host()


class Seen(GatherProgress):
    """Counts the hosts that begin and that have answered."""

    def __init__(self) -> None:
        self.hosts, self.answers = 0, 0

    def began(self, hosts: int) -> None:
        self.hosts = hosts

    def answered(self) -> None:
        self.answers += 1


@pytest.fixture
def inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The path of an inventory with two nodes and a cluster."""
    every = [*NODES, ("@fake/lab", {})]
    groups: Any = {"gpu_nodes": (NODES, QUICK), "gpu_cluster": (["@fake/lab"], QUICK)}
    monkeypatch.setattr(gathering, "_load", lambda *about: Inventory((every, {}), {}, **groups))
    path = tmp_path / "inventory.py"
    path.touch()
    with ctx_state.use(None), ctx_inventory.use(None):
        yield str(path)


def read(state: Any, host: Any) -> tuple[NodeFacts, str]:
    """The facts of a host, which must be connected while they are read."""
    assert host.connected
    assert state.current_stage is StateStage.Prepare
    return FACTS, f"read {host.name}"


def names(found: list[Gathered]) -> list[str]:
    return [each.name.removeprefix("@fake/") for each in found]


def test_hosts_are_read_and_clusters_are_not(inventory: str) -> None:
    seen = Seen()
    found = gather_facts(inventory, (), read, seen)
    assert names(found) == ["one", "two", "lab"]
    one, two, lab = found
    assert (one.facts, one.problem, one.beside, one.is_cluster) == (
        FACTS, None, "read @fake/one", False,
    )  # fmt: skip
    assert one.data["driver_branch"] == "580"
    assert "driver_branch" not in two.data
    assert "gpu_nodes" in one.groups
    assert (lab.facts, lab.is_cluster, lab.beside) == (None, True, None)
    assert lab.data["fake_delay"] == QUICK["fake_delay"]
    assert "gpu_cluster" in lab.groups
    assert (seen.hosts, seen.answers) == (2, 2)


@pytest.mark.parametrize(
    ("limit", "there"),
    [
        (("@fake/two",), ["two"]),
        (("gpu_nodes",), ["one", "two"]),
        (("gpu_cluster",), ["lab"]),
        (("*/t*", "@fake/one"), ["one", "two"]),
        (("@fake/two", "gpu_nodes"), ["one", "two"]),
    ],
)
def test_a_limit_names_hosts_groups_and_patterns(
    limit: tuple[str, ...], there: list[str], inventory: str
) -> None:
    assert names(gather_facts(inventory, limit, read)) == there


@pytest.mark.parametrize("silent", [("@fake/one",), ("@fake/one", "@fake/two")])
def test_a_host_that_is_not_reached_says_why(
    silent: tuple[str, ...], inventory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(connector: FakeConnector) -> None:
        if connector.host.name in silent:
            raise ConnectError("no route")

    gone: list[str] = []
    monkeypatch.setattr(FakeConnector, "connect", connect)
    monkeypatch.setattr(FakeConnector, "disconnect", lambda self: gone.append(self.host.name))
    one, two, _ = gather_facts(inventory, (), read)
    assert one.problem
    assert (one.problem.code, one.facts) == ("GF005", None)
    assert (two.facts is None) is (two.name in silent)
    assert gone == ([] if two.name in silent else ["@fake/two"])


def test_an_unknown_name_and_an_inventory_without_hosts_are_errors(
    inventory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NoSuchHost, match="--limit three matches") as caught:
        gather_facts(inventory, ("three",), read)
    assert caught.value.hosts == ["@fake/one", "@fake/two", "@fake/lab"]
    monkeypatch.setattr(gathering, "_load", lambda *about: Inventory(([], {})))
    with pytest.raises(Stopped, match="it names no host"):
        gather_facts(inventory, (), read)
    with pytest.raises(Stopped, match=r"gone\.py"):
        gather_facts(f"{inventory}/gone.py", (), read)
