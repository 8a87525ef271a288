"""A worker of another cluster is stopped, in whatever order the hosts are read."""

from __future__ import annotations

import pytest
from pyinfra.api import Config, Inventory, State

from gpufleet.facts.model import ClusterHost
from gpufleet.kubernetes.notes import (
    JOINED,
)
from gpufleet.node.operations.place import beside_plane
from gpufleet.node.plan import NodePlan
from gpufleet.node.settings import load_node_settings
from tests.unit.hosts import bare_host

NAMES = ("cp", "ours", "theirs")
AUTHORITIES = {"cp": "a", "ours": "a", "theirs": "b"}


@pytest.mark.parametrize("order", [NAMES, NAMES[::-1], ("ours", "cp", "theirs")], ids=str)
def test_a_worker_of_another_cluster_is_stopped(order: tuple[str, ...]) -> None:
    names = [f"@fake/{name}" for name in NAMES]
    state = State(Inventory((names, {}), control_plane=([names[0]], {})), Config())
    settings, _ = load_node_settings({"kubernetes_enabled": True})
    assert settings is not None
    found = {}
    for name in order:
        authorities = frozenset((AUTHORITIES[name],))
        room = ClusterHost(name=name, paths=frozenset({JOINED}), authorities=authorities)
        host = state.inventory.get_host(f"@fake/{name}")
        facts = bare_host(cluster_host=room)
        problems = beside_plane(state, host, NodePlan(()), settings, facts)
        found.update({each: [one.code for one in list_] for each, list_ in problems.items()})
    assert found == {"@fake/ours": [], "@fake/theirs": ["GF290"]}


def test_without_a_control_plane_there_is_nothing_to_compare() -> None:
    state = State(Inventory((["@fake/a"], {})), Config())
    settings, _ = load_node_settings({"kubernetes_enabled": True})
    assert settings is not None
    host = state.inventory.get_host("@fake/a")
    assert beside_plane(state, host, NodePlan(()), settings, bare_host()) == {}
