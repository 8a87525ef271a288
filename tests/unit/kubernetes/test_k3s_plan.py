"""A node by k3s: its files, its plan, and what stops a host. k3s itself has never been run here."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpufleet.facts.model import (
    ClusterHost,
    Daemon,
    Listener,
    ManagedFile,
    NodeFacts,
    OsRelease,
    Service,
)
from gpufleet.kubernetes.conclude import conclude_k3s
from gpufleet.kubernetes.k3s.config import node_files
from gpufleet.kubernetes.k3s.plan import STATE, K3sPlan
from gpufleet.kubernetes.notes import BEGUN, JOINED, READY
from gpufleet.kubernetes.role import ROLE
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, plan_node, steps
from gpufleet.node.removal import plan_removal
from gpufleet.node.settings import load_settings
from gpufleet.role.place import Place
from tests.unit.hosts import bare_host, record_of
from tests.unit.kubernetes.cluster_hosts import PLANE, ROOM, WORKER, codes, joined

GOLDEN = Path(__file__).parent / "golden"
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


def written(part: str, version: str = VERSION, **more: Any) -> str:
    """The files of a node, one after the other, with path and mode."""
    known = load_catalog().kubernetes.k3s
    parts = node_files(settings_of(**more), known, version, part)  # type: ignore[arg-type]
    return "\n".join(f"==> {each.path} {each.mode:04o}\n{each.content}" for each in parts)


@pytest.mark.parametrize("part", ["control-plane", "worker"])
@pytest.mark.parametrize("kind", ["least", "full"])
def test_the_files_of_a_node(part: str, kind: str) -> None:
    name = f"k3s-{'server' if part == 'control-plane' else 'agent'}-{kind}.txt"
    assert written(part, **(FULL if kind == "full" else {})) == (GOLDEN / name).read_text()


def shown(node: NodePlan) -> str:
    """Steps and findings of the role."""
    found = [f"{each.code} {each.message}" for part in node.parts if part.role is ROLE
             for each in part.findings]  # fmt: skip
    lines = [line for line in steps(node) if line.startswith("kubernetes:")]
    return "\n".join([*lines, *found]) + "\n"


def cases() -> dict[str, NodePlan]:
    """What the golden plans are of."""
    begun = with_paths(BEGUN, f"{K3S}/config.yaml")
    return {
        "server": node_of(bare()),
        "agent": node_of(bare(), WORKER),
        "converged": node_of(a_node()),
        "broken-off": node_of(bare(cluster_host=begun)),
        "changed": node_of(a_node(), registry_mirrors=FULL["registry_mirrors"]),
        "upgrade-refused": node_of(a_node(), version="v1.32.3+k3s1"),
        "servers-refused": node_of(
            bare(), replace(PLANE, control_planes=("gpu-01", "gpu-02", "gpu-03")),
            endpoint="k8s.lab.example.com",
        ),
    }  # fmt: skip


def test_plans() -> None:
    found = "\n".join(f"==> {name}\n{shown(node)}" for name, node in cases().items())
    assert found == (GOLDEN / "k3s-plans.txt").read_text()


def test_a_node_of_ours_is_converged() -> None:
    for place in (PLANE, WORKER):
        facts = a_node(place)
        assert codes(node_of(facts, place)) == []
        assert plan_of(facts, place).converged


def test_no_containerd_is_installed_for_it() -> None:
    node = node_of(bare())
    assert [part.role.name for part in node.wanted if part.role.name == "containerd"] == []
    assert not node.blockers


def test_a_reset_takes_files_and_release_too() -> None:
    """They were installed before the run broke off, and go with the reset."""
    plan = plan_of(replace(a_node(), cluster_host=with_paths(BEGUN, STATE)))
    assert (plan.reset, plan.joined) == (True, False)
    assert plan.files == plan.wanted_files
    assert plan.missing == plan.release


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


def test_the_ports_of_a_gate_are_read() -> None:
    assert 6444 in ROLE.ports(settings_of())


def test_an_architecture_without_a_program_is_refused() -> None:
    kernel = bare().kernel
    assert codes(node_of(bare(kernel=replace(kernel, architecture="s390x")))) == ["GF905"]
    plan = plan_of(bare(kernel=replace(kernel, architecture="aarch64")))
    assert plan.release[-1].name == "k3s-arm64"
    assert plan.release[-1].target == "/usr/local/bin/k3s"


def test_a_node_stays_with_what_made_it() -> None:
    assert codes(node_of(a_node(), distribution="kubeadm", version=None)) == ["GF921"]
    record = record_of(kubernetes={"part": "control-plane", "version": "1.36.3"})
    assert codes(node_of(joined(provenance=record))) == ["GF921"]


def test_the_distribution_is_the_clusters() -> None:
    place = replace(WORKER, plane={"kubernetes_enabled": True})
    node = node_of(bare(), place)
    assert "GF960" in codes(node)


@pytest.mark.parametrize(("version", "name"), [
    ("v1.30.4+k3s1", "config.toml.tmpl"),
    ("v1.31.5+k3s1", "config.toml.tmpl"),
    ("v1.31.6+k3s1", "config-v3.toml.tmpl"),
    ("v1.32.1+k3s1", "config.toml.tmpl"),
    ("v1.32.2+k3s1", "config-v3.toml.tmpl"),
    ("v1.36.3+k3s1", "config-v3.toml.tmpl"),
])  # fmt: skip
def test_containerds_template_is_named_by_its_version(version: str, name: str) -> None:
    assert load_catalog().kubernetes.k3s.template_of(version) == name
    assert f"/containerd/{name} " in written("worker", version, k3s_containerd="root = 'x'")


def test_files_of_this_machine_are_read_and_compared(tmp_path: Path) -> None:
    (tmp_path / "k3s").write_bytes(b"program")
    (tmp_path / IMAGES).write_bytes(b"images")
    (tmp_path / "sha256sum-amd64.txt").write_text("")
    digest = hashlib.sha256(b"program").hexdigest()
    own = {"k3s_files": [f"{tmp_path}/*"], "k3s_url": None, "k3s_sha256": {"k3s": digest}}
    plan = plan_of(bare(), **own)
    assert [(each.name, each.mode, each.url) for each in plan.missing] == [
        ("k3s", "755", ""), (IMAGES, "644", ""),
    ]  # fmt: skip
    assert plan.missing[0].sha256 == digest
    (tmp_path / "k3s").write_bytes(b"another")
    assert codes(node_of(bare(), **own)) == ["GF906"]


def test_a_mirror_has_the_version_in_its_path() -> None:
    urls = {each.name: each.url for each in plan_of(bare()).missing}
    assert urls["k3s"] == "https://mirror.example.com/k3s/v1.32.2%2Bk3s1/k3s"
    assert set(urls) == {"k3s", IMAGES}


def test_no_secret_is_in_the_files_and_none_can_be_set() -> None:
    for name in ("token", "agent-token", "token-file", "server", "datastore-endpoint"):
        settings, problems = load_settings(data(k3s_config={name: "x"}))
        assert settings is None
        assert "kubernetes_k3s_config" in problems[0].message
    assert "token-file: /etc/rancher/k3s/token" in written("worker")


@pytest.mark.parametrize("more", [
    {"k3s_sha256": {"k3s": "ABC"}}, {"k3s_containerd": "a = = b"}, {"k3s_files": ["/no/such"]},
    {"k3s_url": "https://user:pw@mirror"}, {"version": "1.32.2+k3s1"}, {"distribution": "rke2"},
], ids=str)  # fmt: skip
def test_what_cannot_be_used_is_refused(more: dict[str, Any]) -> None:
    settings, problems = load_settings(data(**more))
    assert settings is None
    assert f"kubernetes_{next(iter(more))}" in problems[0].message


def test_a_destruction_takes_k3s_away() -> None:
    settings, _ = load_settings(data())
    assert settings
    begun = bare(
        cluster_host=with_paths(BEGUN, f"{K3S}/config.yaml"),
        provenance=record_of(driver={"version": "580.95.05"}),
    )
    for facts in (a_node(), begun):
        done = plan_removal(settings, facts, load_catalog(), place=PLANE)
        removal = done.of(ROLE)
        assert (removal.distribution, removal.reset, removal.turn) == ("k3s", True, "last")
    done = plan_removal(settings, joined(provenance=record_of(kubernetes={"version": "1.36.3"})),
                        load_catalog(), place=PLANE)  # fmt: skip
    assert done.of(ROLE).distribution == "kubeadm"
