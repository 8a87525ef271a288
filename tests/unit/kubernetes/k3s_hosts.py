"""Hosts that are to be nodes by k3s, and nodes, with their plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpufleet.facts.model import (
    ClusterHost,
    Daemon,
    Listener,
    ManagedFile,
    NodeFacts,
    Service,
)
from gpufleet.kubernetes.conclude import conclude_k3s
from gpufleet.kubernetes.k3s.plan import STATE, K3sPlan
from gpufleet.kubernetes.notes import JOINED, READY
from gpufleet.kubernetes.role import ROLE
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, plan_node
from gpufleet.node.settings import load_settings
from gpufleet.role.place import Place
from tests.unit.hosts import bare_host, record_of
from tests.unit.kubernetes.cluster_hosts import PLANE, ROOM, WORKER

K3S = "/etc/rancher/k3s"
VERSION = "v1.32.2+k3s1"
IMAGES = "k3s-airgap-images-amd64.tar.zst"
DIGESTS = {"k3s": "a" * 64, IMAGES: "b" * 64, "k3s-arm64": "c" * 64}
MIRROR = {"k3s_url": "https://mirror.example.com/k3s", "k3s_sha256": DIGESTS}
FULL: dict[str, Any] = {
    "labels": {"rack": "r7", "example.com/zone": "b"},
    "taints": ["gpu=h100:NoSchedule"],
    "endpoint": "k8s.lab.example.com",
    "registry_mirrors": {"docker.io": "https://mirror.example.com/v2/docker.io"},
    "k3s_config": {"default-runtime": "nvidia", "disable": ["traefik"]},
    "k3s_containerd": '[plugins."io.containerd.cri.v1.images"]\n  max_concurrent_downloads = 5',
}
OFFERED = {"distribution": "k3s", "version": VERSION, **MIRROR}


def with_paths(*paths: str) -> ClusterHost:
    return replace(ROOM, paths=frozenset(paths))


def data(**more: Any) -> dict[str, Any]:
    keys = {"enabled": True, **OFFERED, **more}
    return {f"kubernetes_{key}": value for key, value in keys.items()}


def settings_of(**more: Any) -> KubernetesSettings:
    settings, problems = load_settings(data(**more))
    assert settings is not None, problems
    return settings.of(ROLE)


def bare(**changes: Any) -> NodeFacts:
    """A host without a container runtime: k3s has its own."""
    return bare_host(**{"cluster_host": ROOM, "runtimes": {}, **changes})


def node_of(facts: NodeFacts, place: Place = PLANE, **more: Any) -> NodePlan:
    settings, problems = load_settings(data(**more))
    assert settings is not None, problems
    if place is WORKER:
        place = replace(place, plane=data(**more))
    return plan_node(settings, facts, load_catalog(), facts.clock, place=place)


def plan_of(facts: NodeFacts, place: Place = PLANE, **more: Any) -> K3sPlan:
    plan = node_of(facts, place, **more).of(ROLE)
    assert isinstance(plan, K3sPlan)
    return plan


def a_node(place: Place = PLANE, **more: Any) -> NodeFacts:
    """The host after a run: files, notes, unit, record."""
    facts = bare()
    plan = plan_of(facts, place, **more)
    done = conclude_k3s(facts, plan)
    files = {each.path: ManagedFile(each.path, str(each.content), each.mode) for each in plan.files}
    unit = Service(plan.unit, "loaded", "active", "enabled")
    return bare(
        files=files,
        kubelet=True,
        services={unit.name: unit},
        provenance=record_of(kubernetes=done.entry.as_json()),
        cluster_host=with_paths(JOINED, READY, STATE, f"{K3S}/config.yaml"),
        listeners=(Listener("::", 10250, Daemon(7, "k3s-server")),),
    )
