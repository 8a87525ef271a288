"""What stops a host before k3s is installed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.facts.model import (
    Daemon,
    Listener,
    ManagedFile,
    NodeFacts,
    OsRelease,
)
from gpufleet.kubernetes.k3s.plan import STATE
from gpufleet.kubernetes.notes import BEGUN, JOINED, READY
from gpufleet.kubernetes.role import ROLE
from gpufleet.node.catalog import load_catalog
from gpufleet.node.removal import plan_removal
from gpufleet.node.settings import load_settings
from gpufleet.role.place import Place
from tests.unit.hosts import record_of
from tests.unit.kubernetes.cluster_hosts import PLANE, ROOM, WORKER, codes, host, joined
from tests.unit.kubernetes.k3s_hosts import (
    K3S,
    a_node,
    bare,
    data,
    node_of,
    plan_of,
    settings_of,
    with_paths,
)


def test_k3s_that_was_removed_by_hand() -> None:
    """An agent joins again; a server is not begun again unasked."""
    gone = replace(a_node(WORKER), cluster_host=with_paths(JOINED, READY))
    plan = plan_of(gone, WORKER)
    assert (plan.reset, plan.joined, plan.waits) == (True, False, True)
    assert codes(node_of(gone, WORKER)) == []
    server = replace(a_node(), cluster_host=with_paths(JOINED, READY))
    assert codes(node_of(server)) == ["GF927"]


GATES: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({}, {"version": "1.32"}, ["GF902"]),
    ({}, {"version": None}, ["GF902"]),
    ({}, {"version": "v1.27.9+k3s1"}, ["GF931"]),
    ({}, {"version": "v1.28.0+k3s1"}, ["GF931"]),
    ({}, {"version": "v1.28.1+k3s1"}, []),
    ({}, {"version": "v1.37.0+k3s1"}, ["GF931"]),
    ({}, {"version": "v1.36.9+k3s2"}, []),
    ({}, {"kubelet": {"maxPods": 50}, "etcd_tag": "3.6"}, ["GF907"]),
    ({}, {"k3s_url": None}, ["GF904"]),
    ({}, {"k3s_sha256": {}}, ["GF904"]),
    ({}, {"k3s_sha256": {"k3s-arm64": "c" * 64}}, ["GF904"]),
    ({"cluster_host": replace(ROOM, cgroups=1)}, {}, []),
    ({"cluster_host": replace(ROOM, cgroups=1)}, {"version": "v1.35.0+k3s1"}, ["GF932"]),
    ({"cluster_host": replace(ROOM, swap=("/dev/sda2",))}, {}, []),
    ({"cluster_host": replace(ROOM, name="gpu_01")}, {}, ["GF939"]),
    ({"cluster_host": replace(ROOM, processors=1)}, {}, ["GF938"]),
    ({"cluster_host": with_paths(f"{K3S}/k3s.yaml")}, {}, ["GF940"]),
    ({"cluster_host": with_paths("/etc/kubernetes/admin.conf")}, {}, ["GF940"]),
    ({"listeners": (Listener("::", 6443, Daemon(7, "other")),)}, {}, ["GF937"]),
    ({"listeners": (Listener("127.0.0.1", 6444, Daemon(7, "other")),)}, {}, ["GF937"]),
    ({"cluster_host": with_paths("/sys/class/net/cni0")}, {}, ["GF940"]),
    ({"cluster_host": with_paths("/etc/cni/net.d/00-podman.conflist")}, {}, []),  # it has its own
    ({"kubelet": True}, {}, ["GF941"]),
    ({"os": OsRelease("arch", "", (), "", "")}, {}, []),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "more", "found"), GATES, ids=str)
def test_gates(facts: dict[str, Any], more: dict[str, Any], found: list[str]) -> None:
    assert codes(node_of(bare(**facts), **more)) == found


def test_a_version_of_k3s_is_none_of_kubeadm() -> None:
    assert codes(node_of(bare(), distribution="kubeadm")) == ["GF903"]


@pytest.mark.parametrize(("version", "found"), [
    ("v1.31.9+k3s1", []), ("v1.32.9+k3s1", []), ("v1.33.0+k3s1", ["GF961"]),
])  # fmt: skip
def test_an_agent_is_no_newer_than_its_server(version: str, found: list[str]) -> None:
    plan, own = plan_of(bare(), WORKER, version=version), settings_of()
    assert [each.code for each in ROLE.beside(plan, own, bare(), a_node())] == found


@pytest.mark.parametrize(("more", "key"), [
    ({"pod_subnet": "10.9.0.0/16"}, "kubernetes_pod_subnet = 10.9.0.0/16"),
    ({"service_subnet": "10.9.0.0/16"}, "kubernetes_service_subnet = 10.9.0.0/16"),
    ({"network": "none"}, "kubernetes_network = none"),
    ({"endpoint": "k8s.lab"}, "kubernetes_endpoint = k8s.lab:6443"),
])  # fmt: skip
def test_settings_of_a_cluster_do_not_change(more: dict[str, Any], key: str) -> None:
    """The server would be restarted with them, and k3s ends over another network."""
    node = node_of(a_node(), **more)
    (problem,) = (each for part in node.parts if part.role is ROLE for each in part.findings)
    assert problem.code == "GF089"
    assert f"does not have {key}." in problem.message
    assert codes(node_of(a_node(**more), **more)) == []
    assert codes(node_of(a_node(**more))) == ["GF089"]


@pytest.mark.parametrize("text", [None, "", "- \x00: {{{\n" + "&a [*a]\n" * 9])
def test_a_file_that_says_nothing_is_no_reason_to_trust_it(text: str | None) -> None:
    """Without a file it is written again; another one is not the cluster's."""
    facts = a_node()
    path = "/etc/rancher/k3s/config.yaml"
    other = replace(facts, files={**facts.files, path: ManagedFile(path, text, 0o600)})
    assert codes(node_of(other)) == (["GF089", "GF089"] if text else [])


def test_the_ports_of_a_gate_are_read() -> None:
    assert 6444 in ROLE.ports(settings_of())


def test_an_architecture_without_a_program_is_refused() -> None:
    kernel = bare().kernel
    assert codes(node_of(bare(kernel=replace(kernel, architecture="s390x")))) == ["GF905"]
    plan = plan_of(bare(kernel=replace(kernel, architecture="aarch64")))
    assert [each.name for each in plan.release] == ["k3s-arm64"]
    assert plan.release[-1].target == "/usr/local/bin/k3s"


@pytest.mark.parametrize(("architecture", "names"), [
    ("x86_64", ["k3s", "k3s-airgap-images-amd64.tar.zst", "own-images.tar"]),
    ("aarch64", ["k3s-airgap-images-arm64.tar", "k3s-arm64", "own-images.tar"]),
])  # fmt: skip
def test_a_host_gets_the_images_of_its_architecture(architecture: str, names: list[str]) -> None:
    """The images of another one have the same names and do not run."""
    all_of_them = (
        "k3s",
        "k3s-arm64",
        "k3s-airgap-images-amd64.tar.zst",
        "k3s-airgap-images-arm64.tar",
        "k3s-airgap-images-arm.tar",
        "own-images.tar",
    )
    kernel = replace(bare().kernel, architecture=architecture)
    plan = plan_of(bare(kernel=kernel), k3s_sha256=dict.fromkeys(all_of_them, "a" * 64))
    assert [each.name for each in plan.release] == names


def test_a_node_stays_with_what_made_it() -> None:
    assert codes(node_of(a_node(), distribution="kubeadm", version=None)) == ["GF921"]
    record = record_of(kubernetes={"part": "control-plane", "version": "1.36.3"})
    assert codes(node_of(joined(provenance=record))) == ["GF921"]


BY_K3S = bare(cluster_host=with_paths(BEGUN, STATE))
BY_KUBEADM = host(cluster_host=with_paths(BEGUN, "/var/lib/gpufleet/kubernetes.before"))
UNKNOWN = bare(cluster_host=with_paths(BEGUN))


@pytest.mark.parametrize(("facts", "distribution", "found"), [
    (BY_K3S, "k3s", []),
    (BY_K3S, "kubeadm", ["GF921"]),
    (BY_KUBEADM, "k3s", ["GF921"]),
    (BY_KUBEADM, "kubeadm", []),
    (replace(BY_K3S, cluster_host=with_paths(JOINED, STATE)), "kubeadm", ["GF921"]),
    (UNKNOWN, "k3s", []),
])  # fmt: skip
def test_a_killed_run_is_ended_by_what_began_it(
    facts: NodeFacts, distribution: str, found: list[str]
) -> None:
    """Before there is a record: the other one's reset would leave what runs."""
    version = {} if distribution == "k3s" else {"version": None, "k3s_url": None}
    assert codes(node_of(facts, distribution=distribution, **version)) == found


@pytest.mark.parametrize(("facts", "by"), [
    (BY_K3S, "k3s"), (BY_KUBEADM, "kubeadm"), (UNKNOWN, "kubeadm"),
])  # fmt: skip
def test_a_killed_run_is_destroyed_by_what_began_it(facts: NodeFacts, by: str) -> None:
    settings, _ = load_settings({})
    assert settings
    removal = plan_removal(settings, facts, load_catalog(), only=ROLE, place=PLANE).of(ROLE)
    assert (removal.distribution, removal.reset) == (by, True)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize(
    ("was", "place"), [(WORKER, PLANE), (PLANE, WORKER)], ids=["agent", "server"]
)
def test_a_server_is_no_agent_and_the_other_way_round(
    was: Place, place: Place, recorded: bool
) -> None:
    """Also before there is a record: two units of k3s would run on the same data."""
    facts = a_node(was)
    node = node_of(facts if recorded else replace(facts, provenance=record_of()), place)
    assert "GF962" in codes(node)


def test_the_distribution_is_the_clusters() -> None:
    place = replace(WORKER, plane={"kubernetes_enabled": True})
    node = node_of(bare(), place)
    assert "GF960" in codes(node)


@pytest.mark.parametrize("more", [
    {"k3s_sha256": {"k3s": "ABC"}}, {"k3s_containerd": "a = = b"}, {"k3s_files": ["/no/such"]},
    {"k3s_url": "https://user:pw@mirror"}, {"version": "1.32.2+k3s1"}, {"distribution": "rke2"},
], ids=str)  # fmt: skip
def test_what_cannot_be_used_is_refused(more: dict[str, Any]) -> None:
    settings, problems = load_settings(data(**more))
    assert settings is None
    assert f"kubernetes_{next(iter(more))}" in problems[0].message
