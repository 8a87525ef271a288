"""Shared by the tests of containerd plan."""

from __future__ import annotations

from typing import Any

from gpufleet.containerd.plan import (
    ContainerdPlan,
)
from gpufleet.containerd.role import ROLE
from gpufleet.facts.model import (
    ClusterHost,
    ManagedFile,
    NodeFacts,
)
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, plan_node
from gpufleet.node.settings import NodeSettings, load_node_settings
from gpufleet.role.place import Place
from tests.unit.hosts import bare_host

CONFIG = "/etc/containerd/config.toml"
ROOM = ClusterHost(name="gpu-01", cgroups=2, processors=16, memory=64 * 2**20)
PLACE = Place(frozenset({"control_plane"}), ("gpu-01",))


def host(**changes: Any) -> NodeFacts:
    """A host without any container runtime."""
    file = ManagedFile(CONFIG, None)
    usual: dict[str, Any] = {"cluster_host": ROOM, "files": {CONFIG: file}}
    return bare_host(**{**usual, **changes})


def settings(**data: Any) -> NodeSettings:
    found, problems = load_node_settings({"kubernetes_enabled": True, **data})
    assert found, problems
    return found


def node_of(facts: NodeFacts, **data: Any) -> NodePlan:
    return plan_node(settings(**data), facts, load_catalog(), facts.clock, place=PLACE)


def plan_of(facts: NodeFacts, **data: Any) -> ContainerdPlan:
    plan = node_of(facts, **data).of(ROLE)
    assert plan
    return plan
