"""Findings that stop a host before gpufleet changes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.facts.model import (
    Daemon,
    Listener,
    ManagedFile,
    OsRelease,
    Service,
)
from gpufleet.kubernetes.notes import (
    INSTALLING,
)
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node
from gpufleet.node.settings import load_node_settings
from gpufleet.role.place import Place, Twin
from tests.unit.kubernetes.cluster_hosts import (
    CONFIG,
    CONTAINERD,
    PLANE,
    ROOM,
    WORKER,
    beside,
    codes,
    host,
    joined,
    node_of,
    plan_of,
)

# as the packages of kubelet and kubeadm leave it before kubeadm init or join
KUBELET_WAITS = {"kubelet.service": Service("kubelet.service", "loaded", "activating", "enabled")}
K0S = {"k0sworker.service": Service("k0sworker.service", "loaded", "active", "enabled")}
FIREWALLD = {"firewalld.service": Service("firewalld.service", "loaded", "active", "enabled")}

GATES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"cluster_host": replace(ROOM, cgroups=1)}, {}, "GF932"),
    ({"cluster_host": replace(ROOM, cgroups=1)}, {"version": "1.34"}, ""),
    ({"cluster_host": replace(ROOM, cgroups=1)}, {"kubelet": {"failCgroupV1": False}}, "GF933"),
    ({"runtimes": {"containerd": replace(CONTAINERD, version="1.4.13")}}, {}, "GF934"),
    ({"cluster_host": replace(ROOM, paths=frozenset({"/etc/kubernetes/pki/ca.crt"}))}, {}, "GF940"),
    ({"cluster_host": replace(ROOM, swap=("/dev/sda2",))}, {}, "GF936"),
    (
        {"cluster_host": replace(ROOM, swap=("/dev/sda2",))},
        {"kubelet": {"failSwapOn": False}},
        "",
    ),
    ({"listeners": (Listener("::", 10250, Daemon(7, "agent")),)}, {}, "GF937"),
    ({"cluster_host": replace(ROOM, name="gpu_01")}, {}, "GF939"),
    ({"cluster_host": replace(ROOM, name="n" * 64)}, {}, "GF939"),
    ({"cluster_host": replace(ROOM, name="n" * 63)}, {}, ""),
    ({"cluster_host": replace(ROOM, name="GPU-01")}, {}, ""),
    (
        {"cluster_host": replace(ROOM, paths=frozenset({"/etc/kubernetes/admin.conf"}))},
        {},
        "GF940",
    ),
    ({"cluster_host": replace(ROOM, paths=frozenset({"/etc/cni/net.d/10-a.conf"}))}, {}, "GF940"),
    ({"cluster_host": replace(ROOM, paths=frozenset({"/etc/cni/net.d/87-a.conf"}))}, {}, ""),
    ({"cluster_host": replace(ROOM, paths=frozenset({"/etc/cni/net.d/.keep"}))}, {}, ""),
    ({"cluster_host": replace(ROOM, paths=frozenset({"/sys/class/net/cni0"}))}, {}, "GF940"),
    (
        {"cluster_host": replace(ROOM, paths=frozenset({"/sys/class/net/cni0"}))},
        {"network": "none"},
        "",
    ),
    ({"runtimes": {"containerd": replace(CONTAINERD, running=False)}}, {}, "GF291"),
    ({"kubelet": True}, {}, "GF941"),
    ({"kubelet": True, "services": KUBELET_WAITS, "packages": joined().packages}, {}, ""),
    ({"kubelet": True, "services": KUBELET_WAITS}, {}, "GF941"),  # of another installer
    ({"services": FIREWALLD}, {}, "GF092"),
    (
        {
            "kubelet": True,
            "services": KUBELET_WAITS,
            "packages": joined().packages,
            "cluster_host": replace(ROOM, paths=frozenset({"/var/lib/kubelet/config.yaml"})),
        },
        {},
        "GF941",
    ),
    (
        {
            "kubelet": True,
            "services": {**KUBELET_WAITS, **K0S},
            "packages": joined().packages,
        },
        {},
        "GF941",
    ),
    ({"files": {CONFIG: ManagedFile(CONFIG, 'disabled_plugins = ["cri"]\n')}}, {}, "GF945"),
    ({}, {"version": "1.27"}, "GF931"),
    ({"os": OsRelease("centos", "7", ("rhel",), "", ""), "package_manager": "yum"}, {}, "GF930"),
]


@pytest.mark.parametrize("version", ["01.36", "1.036", "1.36.03", "1.36.3.1", "v1.36.3", "1.3٦"])
def test_a_version_that_no_package_has_is_refused(version: str) -> None:
    settings, problems = load_node_settings(
        {"kubernetes_enabled": True, "kubernetes_version": version}
    )
    assert settings is None
    assert "a minor or a version" in problems[0].message


@pytest.mark.claim("What stops a host is found before Kubernetes changes it.", level=1)
@pytest.mark.parametrize(("facts", "data", "code"), GATES, ids=str)
def test_gates(facts: dict[str, Any], data: dict[str, Any], code: str) -> None:
    assert codes(node_of(host(**facts), **data)) == ([code] if code else [])


def test_swap_stops_a_host_but_no_node_that_runs_with_it() -> None:
    """The cluster's kubelet-config may have accepted swap since."""
    swap = replace(ROOM, swap=("/dev/zram0",))
    (before,) = node_of(host(cluster_host=swap)).blockers
    assert before.code == "GF936"
    node = joined(cluster_host=replace(swap, paths=joined().cluster_host.paths))
    assert codes(node_of(node)) == ["GF936"]
    assert not node_of(node).blockers
    assert node_of(replace(node, services=KUBELET_WAITS)).blockers == (before,)


@pytest.mark.parametrize(
    ("place", "data", "ports"),
    [
        (PLANE, {}, "TCP 6443, 2379, 2380, 10250, 10257, 10259 and UDP 8472"),
        (WORKER, {}, "TCP 10250 and UDP 8472"),
        (WORKER, {"network": "none"}, "TCP 10250 and your network's"),
    ],
)
def test_a_firewall_is_named_until_the_host_has_joined(
    place: Place, data: dict[str, Any], ports: str
) -> None:
    (warning,) = node_of(host(services=FIREWALLD), place, **data).parts[-1].findings
    assert f"between all hosts: {ports}." in warning.remedy
    assert codes(node_of(joined(services=FIREWALLD))) == []


def test_a_control_plane_needs_memory_and_processors() -> None:
    small = host(cluster_host=replace(ROOM, processors=1, memory=2**20))
    assert codes(node_of(small, PLANE)) == ["GF938", "GF938"]
    assert codes(node_of(small, WORKER)) == []


def test_a_cluster_has_a_control_plane() -> None:
    assert codes(node_of(host(), Place(frozenset()))) == ["GF943"]


@pytest.mark.parametrize("what", ["machine id", "host name", "MAC address"])
def test_clones_are_refused(what: str) -> None:
    place = replace(WORKER, twins=(Twin("gpu-02", what, "one and the same"),))
    node = node_of(host(), place)
    assert codes(node) == ["GF950"]
    assert "gpu-02" in node.parts[-1].findings[0].message


@pytest.mark.parametrize(("ahead", "found"), [(59, []), (61, ["GF953"]), (-61, ["GF953"])])
def test_the_time_is_the_controllers(ahead: int, found: list[str]) -> None:
    settings, _ = load_node_settings({"kubernetes_enabled": True})
    assert settings is not None
    facts = host()
    node = plan_node(settings, facts, load_catalog(), facts.clock - ahead, place=beside())
    assert codes(node) == found


def test_a_node_of_ours_has_no_obstacles_of_its_own_making() -> None:
    facts = joined(listeners=(Listener("::", 10250, Daemon(7, "kubelet")),))
    assert codes(node_of(facts)) == []
    plan = plan_of(facts)
    assert plan.joined
    assert not plan.needed


def test_a_run_that_ended_between_packages_and_kubeadm_goes_on() -> None:
    room = replace(ROOM, paths=frozenset({INSTALLING[0]}))
    assert codes(node_of(host(kubelet=True, cluster_host=room))) == []
