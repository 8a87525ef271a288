"""Container engines that gpufleet does not configure are named, each with its own way to GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.facts.model import NodeFacts, Package, Runtime, Service
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node
from gpufleet.node.settings import load_settings
from tests.unit.hosts import bare_host

SNAP = "snap.docker.dockerd.service"
# The units of clusters that have a containerd of their own.
OWN = {
    "snap.microk8s.daemon-containerd.service": "GF445",
    "k0sworker.service": "GF446",
    "k0scontroller.service": "GF446",
}
DOCKER = Runtime("docker", "28.3.2", "docker.service", "/etc/docker/daemon.json", running=True)


def codes(facts: NodeFacts) -> set[str]:
    settings = load_settings({})[0]
    assert settings
    found = plan_node(settings, facts, load_catalog(), facts.clock).all_findings
    return {finding.code for finding in found} & {
        "GF166", "GF167", "GF168", "GF169", "GF420", "GF445", "GF446",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, "GF420"),
        ({"services": {SNAP: Service(SNAP, "loaded", "active", "enabled")}}, "GF166"),
        ({"rootless_docker": True}, "GF167"),
        ({"packages": {"docker-desktop": Package("docker-desktop", "4.40", "amd64")}}, "GF168"),
        ({"packages": {"podman": Package("podman", "4.3.1", "amd64")}}, "GF169"),
    ],
)
def test_an_engine_is_named_as_what_it_is(changes: dict[str, Any], code: str) -> None:
    assert codes(bare_host(**changes)) == {code}


@pytest.mark.parametrize("unit", OWN)
def test_a_cluster_with_its_own_containerd_is_named(unit: str) -> None:
    services = {unit: Service(unit, "loaded", "active", "enabled")}
    assert codes(bare_host(services=services)) == {OWN[unit]}


def test_a_snap_beside_docker_from_packages_is_named_as_well() -> None:
    snap = {SNAP: Service(SNAP, "loaded", "active", "enabled")}
    assert codes(bare_host(runtimes={"docker": DOCKER}, services=snap)) == {"GF166"}


def test_podman_beside_a_runtime_is_no_news() -> None:
    podman = {"podman": Package("podman", "4.3.1", "amd64")}
    assert codes(bare_host(runtimes={"docker": DOCKER}, packages=podman)) == set()
