"""Findings name the container engines that gpufleet does not configure, and their way to GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.facts.model import NodeFacts, Package, Runtime, Service
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node
from gpufleet.node.settings import load_node_settings
from gpufleet.toolkit.engines import ENGINES
from tests.unit.hosts import bare_host
from tests.unit.toolkit.toolkit_setup import DAEMON, codes, file, plan

SNAP = "snap.docker.dockerd.service"
# Units of clusters that come with their own containerd.
OWN = {
    "snap.microk8s.daemon-containerd.service": "MicroK8s",
    "snap.k8s.containerd.service": "Canonical Kubernetes",
    "k0sworker.service": "k0s",
    "k0scontroller.service": "k0s",
}
NO_CGROUPS = "[nvidia-container-cli]\nno-cgroups = true\n"
DOCKER = Runtime("docker", "28.3.2", "docker.service", "/etc/docker/daemon.json", running=True)
CONTAINERD = Runtime(
    "containerd", "2.1.5", "containerd.service", "/etc/containerd/config.toml", running=True
)


def named(facts: NodeFacts) -> set[str]:
    """The engines that findings name, and GF420 for a host without an engine."""
    settings = load_node_settings({})[0]
    assert settings
    found = plan_node(settings, facts, load_catalog(), facts.clock).all_findings
    engines = {
        name
        for name, (what, _) in ENGINES.items()
        for each in found
        if each.code == "GF166" and each.message.startswith(what)
    }
    return engines | ({each.code for each in found} & {"GF420"})


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "GF420"),
        ({"services": {SNAP: Service(SNAP, "loaded", "active", "enabled")}}, "snap"),
        ({"rootless_docker": True}, "rootless docker"),
        (
            {"packages": {"docker-desktop": Package("docker-desktop", "4.40", "amd64")}},
            "Docker Desktop",
        ),
        ({"packages": {"podman": Package("podman", "4.3.1", "amd64")}}, "Podman"),
    ],
)
def test_an_engine_is_named_as_what_it_is(changes: dict[str, Any], name: str) -> None:
    assert named(bare_host(**changes)) == {name}


@pytest.mark.parametrize("unit", OWN)
def test_a_cluster_with_its_own_containerd_is_named(unit: str) -> None:
    services = {unit: Service(unit, "loaded", "active", "enabled")}
    assert named(bare_host(services=services)) == {OWN[unit]}


def test_a_snap_beside_docker_from_packages_is_named_as_well() -> None:
    snap = {SNAP: Service(SNAP, "loaded", "active", "enabled")}
    assert named(bare_host(runtimes={"docker": DOCKER}, services=snap)) == {"snap"}


def test_podman_beside_a_runtime_is_no_news() -> None:
    podman = {"podman": Package("podman", "4.3.1", "amd64")}
    assert named(bare_host(runtimes={"docker": DOCKER}, packages=podman)) == set()


@pytest.mark.parametrize(
    ("text", "runtimes", "there"),
    [
        (NO_CGROUPS, {"docker": DOCKER}, True),
        ("[nvidia-container-cli]\n#no-cgroups = false\n", {"docker": DOCKER}, False),
        (NO_CGROUPS, {"docker": replace(DOCKER, running=False)}, False),
        (NO_CGROUPS, {"docker": replace(DOCKER, version="29.2.0")}, False),
    ],
)
def test_a_setting_for_rootless_docker_is_named_beside_docker_of_root(
    text: str, runtimes: dict[str, Runtime], there: bool
) -> None:
    """NVIDIA/nvidia-container-toolkit#381 and #85, NVIDIA/dcgm-exporter#440."""
    files = file(DAEMON, None) | file("/etc/nvidia-container-runtime/config.toml", text)
    assert ("GF448" in codes(plan(bare_host(runtimes=runtimes, files=files)))) is there


def test_a_file_that_the_toolkit_cannot_read_is_named_once() -> None:
    both = {each.name: each for each in (DOCKER, CONTAINERD)}
    files = file("/etc/nvidia-container-runtime/config.toml", 'root = "[broken/\n')
    found = plan(bare_host(runtimes=both, files=files))
    (one,) = [each for each in found.findings if each.code == "GF450"]
    assert "line 1" in one.message
