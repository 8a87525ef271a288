"""Hosts before and after they become nodes, and their plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpufleet.facts.model import (
    ClusterHost,
    ManagedFile,
    NodeFacts,
    Package,
    Runtime,
    Service,
)
from gpufleet.kubernetes.notes import (
    JOINED,
    KUBERNETES_READY_PATH,
    NETWORKED,
)
from gpufleet.kubernetes.plan import (
    KubernetesPlan,
)
from gpufleet.kubernetes.role import ROLE
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, plan_node
from gpufleet.node.settings import load_node_settings
from gpufleet.role.place import Place
from tests.unit.hosts import bare_host

CONFIG = "/etc/containerd/config.toml"
CONTAINERD = Runtime("containerd", "1.7.24", "containerd.service", CONFIG, running=True)
ROOM = ClusterHost(name="gpu-01", cgroups=2, processors=16, memory=64 * 2**20)
PLANE = Place(frozenset({"control_plane", "gpu_nodes"}), ("gpu-01",))
WORKER = Place(frozenset({"gpu_nodes"}), ("cp-01",))


def beside(**data: Any) -> Place:
    """A worker whose control plane has these settings."""
    keys = {f"kubernetes_{key}": value for key, value in data.items()}
    return replace(WORKER, plane={"kubernetes_enabled": True, **keys})


PACKAGES = ("kubelet", "kubeadm", "kubectl")


def host(**changes: Any) -> NodeFacts:
    """A host with containerd, and nothing of Kubernetes."""
    usual: dict[str, Any] = {
        "runtimes": {"containerd": CONTAINERD},
        "files": {CONFIG: ManagedFile(CONFIG, "version = 2\n")},
        "cluster_host": ROOM,
    }
    return bare_host(**{**usual, **changes})


def node_of(facts: NodeFacts, place: Place = WORKER, **data: Any) -> NodePlan:
    keys = {f"kubernetes_{key}": value for key, value in data.items()}
    if place.groups == WORKER.groups and not place.plane:  # as an inventory has it: for all hosts
        place = replace(place, plane={"kubernetes_enabled": True, **keys})
    settings, problems = load_node_settings({"kubernetes_enabled": True, **keys})
    assert settings is not None, problems
    return plan_node(settings, facts, load_catalog(), facts.clock, place=place)


def plan_of(facts: NodeFacts, place: Place = WORKER, **data: Any) -> KubernetesPlan:
    plan = node_of(facts, place, **data).of(ROLE)
    assert plan is not None
    return plan


def codes(plan: NodePlan) -> list[str]:
    found = (each for part in plan.parts if part.role is ROLE for each in part.findings)
    return [each.code for each in found]


DONE = frozenset({JOINED, NETWORKED, KUBERNETES_READY_PATH, "/etc/kubernetes/kubelet.conf"})


def joined(version: str = "1.36.3", **changes: Any) -> NodeFacts:
    packages = {name: Package(name, f"{version}-1.1", "amd64") for name in PACKAGES}
    unit = Service("kubelet.service", "loaded", "active", "enabled")
    usual: dict[str, Any] = {
        "packages": packages,
        "cluster_host": replace(ROOM, paths=DONE),
        "kubelet": True,
        "services": {unit.name: unit},
    }
    return host(**{**usual, **changes})
