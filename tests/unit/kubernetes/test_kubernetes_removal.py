"""The removal of two roles from one file: the second starts from the result of the first."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from gpufleet.facts.model import ClusterHost, ManagedFile, NodeFacts, Runtime
from gpufleet.kubernetes.notes import (
    JOINED,
)
from gpufleet.kubernetes.role import ROLE as KUBERNETES
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node
from gpufleet.node.removal import plan_removal
from gpufleet.node.settings import load_node_settings
from gpufleet.role.place import Place
from gpufleet.toolkit.record import ChangesPart
from gpufleet.toolkit.role import ROLE as TOOLKIT
from tests.unit.hosts import bare_host, record_of

CONFIG = "/etc/containerd/config.toml"
BEFORE = 'version = 2\n\n[plugins."io.containerd.grpc.v1.cri".cni]\nbin_dir = "/usr/lib/cni"\n'
ROOM = ClusterHost("gpu-01", 2, 16, 64 * 2**20)


def host(text: str, **changes: Any) -> NodeFacts:
    runtime = Runtime("containerd", "1.6.20", "containerd.service", CONFIG, running=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    usual: dict[str, Any] = {
        "runtimes": {"containerd": runtime},
        "files": {CONFIG: ManagedFile(CONFIG, text, sha256=digest)},
        "cluster_host": ROOM,
    }
    return bare_host(**{**usual, **changes})


def with_both() -> NodeFacts:
    """A host whose file has the settings of the toolkit and of the kubelet, from two steps."""
    settings, _ = load_node_settings({"kubernetes_enabled": True})
    assert settings
    place = Place(frozenset({"control_plane"}), ("gpu-01",))
    facts = host(BEFORE)
    node = plan_node(settings, facts, load_catalog(), facts.clock, place=place)
    toolkit, kubernetes = node.of(TOOLKIT), node.of(KUBERNETES)
    assert toolkit
    assert kubernetes
    assert kubernetes.containerd
    assert kubernetes.containerd.change
    assert kubernetes.containerd.change.after
    changes = ChangesPart.of(kubernetes.containerd.record).as_json()
    record = record_of(
        toolkit={"version": "1.20.1",
                 "runtimes": {"containerd": toolkit.runtimes[0].as_record().as_json()}},
        kubernetes={"version": "1.36.3", "containerd": {"config": CONFIG, "changes": changes}},
    )  # fmt: skip
    room = replace(ROOM, paths=frozenset({JOINED}))
    return host(kubernetes.containerd.change.after, provenance=record, cluster_host=room)


def test_both_leave_a_file_in_one_run() -> None:
    settings, _ = load_node_settings({})
    assert settings
    done = plan_removal(settings, with_both(), load_catalog())
    first = done.of(KUBERNETES).containerd.change
    second = done.of(TOOLKIT).runtimes[0].change
    assert hashlib.sha256(first.after.encode()).hexdigest() == second.sha256
    assert second.after == BEFORE


def test_alone_the_cluster_leaves_the_toolkits_settings() -> None:
    settings, _ = load_node_settings({})
    assert settings
    done = plan_removal(settings, with_both(), load_catalog(), only=KUBERNETES)
    assert "nvidia-container-runtime" in done.of(KUBERNETES).containerd.change.after
    assert done.of(TOOLKIT) is None
