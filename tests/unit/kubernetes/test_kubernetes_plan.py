"""The Kubernetes plan of a host: its part, its packages, its files, and what stands in the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.facts.model import (
    ClusterHost,
    Daemon,
    Listener,
    ManagedFile,
    NodeFacts,
    OsRelease,
    Package,
    Runtime,
    Service,
)
from gpufleet.kubernetes.plan import (
    BEGUN,
    INSTALLING,
    JOINED,
    NETWORKED,
    READY,
    KubernetesPlan,
)
from gpufleet.kubernetes.role import ROLE
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, plan_node, steps
from gpufleet.node.settings import load_settings
from gpufleet.role.place import Place, Twin
from tests.unit.hosts import bare_host, record_of

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
    settings, problems = load_settings({"kubernetes_enabled": True, **keys})
    assert settings is not None, problems
    return plan_node(settings, facts, load_catalog(), facts.clock, place=place)


def plan_of(facts: NodeFacts, place: Place = WORKER, **data: Any) -> KubernetesPlan:
    plan = node_of(facts, place, **data).of(ROLE)
    assert plan is not None
    return plan


def codes(plan: NodePlan) -> list[str]:
    found = (each for part in plan.parts if part.role is ROLE for each in part.findings)
    return [each.code for each in found]


DONE = frozenset({JOINED, NETWORKED, READY, "/etc/kubernetes/kubelet.conf"})


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


def test_the_group_decides_whether_a_host_is_a_control_plane() -> None:
    assert plan_of(host(), PLANE).part == "control-plane"
    assert plan_of(host(), WORKER).part == "worker"
    assert plan_of(host(), WORKER).control_plane == "cp-01"


def test_a_host_without_gpus_becomes_a_node_too() -> None:
    node = node_of(host(pci=()), PLANE)
    assert node.of(ROLE) is not None
    assert [part.role.name for part in node.parts] == ["containerd", "kubernetes"]
    assert not node.blockers


def test_a_host_without_gpus_and_without_kubernetes_has_no_plan() -> None:
    settings, _ = load_settings({})
    assert settings is not None
    found = plan_node(settings, host(pci=()), load_catalog(), 0)
    assert not found.parts
    assert len(found.findings) == 1


def test_disabled_it_does_nothing() -> None:
    assert node_of(host(), enabled=False).of(ROLE) is None


@pytest.mark.parametrize(
    ("version", "wanted", "exact"), [(None, "1.36", False), ("1.35.2", "1.35.2", True)]
)
def test_the_version_is_a_minor_or_exact(version: str | None, wanted: str, exact: bool) -> None:
    plan = plan_of(host(), version=version)
    assert (plan.version, plan.family.exact, plan.needed) == (wanted, exact, True)
    minor = ".".join(wanted.split(".")[:2])
    assert plan.repository.repository is not None
    assert plan.repository.repository.url == f"https://pkgs.k8s.io/core:/stable:/v{minor}/deb/"


GATES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"cluster_host": replace(ROOM, cgroups=1)}, {}, "GF932"),
    ({"cluster_host": replace(ROOM, cgroups=1)}, {"version": "1.34"}, ""),
    ({"cluster_host": replace(ROOM, cgroups=1)}, {"kubelet": {"failCgroupV1": False}}, "GF933"),
    ({"runtimes": {"containerd": replace(CONTAINERD, version="1.4.13")}}, {}, "GF935"),
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
    ({"files": {CONFIG: ManagedFile(CONFIG, 'disabled_plugins = ["cri"]\n')}}, {}, "GF945"),
    ({}, {"version": "1.29"}, "GF931"),
    ({"os": OsRelease("centos", "7", ("rhel",), "", ""), "package_manager": "yum"}, {}, "GF930"),
]


@pytest.mark.parametrize(("facts", "data", "code"), GATES, ids=str)
def test_gates(facts: dict[str, Any], data: dict[str, Any], code: str) -> None:
    assert codes(node_of(host(**facts), **data)) == ([code] if code else [])


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
    settings, _ = load_settings({"kubernetes_enabled": True})
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


@pytest.mark.parametrize(("wanted", "refused"), [("1.36", False), ("1.36.2", True), ("1.35", True)])
def test_an_upgrade_is_refused(wanted: str, refused: bool) -> None:
    assert codes(node_of(joined(), version=wanted)) == (["GF942"] if refused else [])


def without(*paths: str) -> NodeFacts:
    return replace(joined(), cluster_host=replace(ROOM, paths=DONE - set(paths)))


@pytest.mark.parametrize(
    ("paths", "place", "networks", "waits"),
    [
        ((), PLANE, False, False),
        ((NETWORKED, READY), PLANE, True, True),
        ((NETWORKED, READY), WORKER, False, True),
        ((READY,), PLANE, False, True),
    ],
    ids=["all done", "control plane", "worker", "only not Ready"],
)
def test_a_node_whose_network_was_not_finished_gets_it(
    paths: tuple[str, ...], place: Place, networks: bool, waits: bool
) -> None:
    """The run was killed, or failed, after kubeadm had succeeded."""
    plan = plan_of(without(*paths), place)
    assert (plan.networks, plan.waits) == (networks, waits)
    plan = plan_of(without(*paths), place, network="none")
    assert (plan.networks, plan.waits) == (False, False)


def test_a_worker_that_was_reset_by_hand_joins_again() -> None:
    """`kubeadm reset` leaves gpufleet's notes."""
    facts = without("/etc/kubernetes/kubelet.conf")
    plan = plan_of(facts)
    assert (plan.joined, plan.reset, plan.waits, plan.converged) == (False, True, True, False)
    assert (plan.needed, plan.version) == (False, "1.36.3")
    assert codes(node_of(facts)) == []


def test_a_control_plane_that_was_reset_by_hand_is_not_begun_again_unasked() -> None:
    assert codes(node_of(without("/etc/kubernetes/kubelet.conf"), PLANE)) == ["GF292"]


def test_a_reset_takes_what_was_finished_before() -> None:
    """A destruction was killed before it removed its notes."""
    room = replace(ROOM, paths=DONE - {JOINED} | {BEGUN})
    plan = plan_of(replace(joined(), cluster_host=room), PLANE)
    assert (plan.reset, plan.networks, plan.waits) == (True, True, True)


def test_missing_packages_of_a_node_are_installed() -> None:
    facts = joined()
    packages = {name: each for name, each in facts.packages.items() if name != "kubeadm"}
    assert plan_of(replace(facts, packages=packages)).needed
    assert codes(node_of(replace(facts, packages=packages))) == []


def test_a_node_newer_than_the_catalog_stays() -> None:
    facts = joined("1.99.1", runtimes={"containerd": replace(CONTAINERD, version="2.1.0")})
    assert codes(node_of(facts)) == []
    assert codes(node_of(facts, version="1.99.1")) == ["GF931"]


@pytest.mark.parametrize(
    ("plane", "data", "key"),
    [
        ({"kubelet": {"failSwapOn": False}}, {}, "kubernetes_kubelet"),
        ({}, {"version": "1.35"}, "kubernetes_version"),
        ({"pod_subnet": "10.8.0.0/16"}, {}, "kubernetes_pod_subnet"),
        ({"enabled": False}, {}, "kubernetes_enabled"),
        ({"labels": {"a": "b"}, "hold": False}, {}, ""),
    ],
    ids=str,
)
def test_settings_of_the_cluster_are_those_of_its_control_plane(
    plane: dict[str, Any], data: dict[str, Any], key: str
) -> None:
    node = node_of(host(), beside(**plane), **data)
    assert codes(node) == (["GF960"] if key else [])
    if key:
        assert key in node.parts[-1].findings[0].message


def test_a_worker_needs_its_control_plane_in_the_run() -> None:
    alone = replace(WORKER, absent=frozenset({"cp-01"}))
    assert codes(node_of(host(), alone)) == ["GF944"]
    assert codes(node_of(joined(), alone)) == []


def test_a_node_does_not_change_sides() -> None:
    record = record_of(kubernetes={"part": "worker", "version": "1.36.3"})
    assert codes(node_of(joined(provenance=record), PLANE)) == ["GF962"]
    assert codes(node_of(joined(provenance=record), WORKER)) == []


@pytest.mark.parametrize(("own", "cluster", "found"), [
    ({"a"}, {"a"}, []),
    ({"a", "new"}, {"old", "a"}, []),
    ({"a"}, {"b"}, ["GF290"]),
    ({"a"}, None, ["GF290"]),  # destroyed by a run that was killed, or another control plane
    ({"a"}, set(), []),
    (set(), {"b"}, []),
])  # fmt: skip
def test_a_worker_of_another_cluster_is_none_of_this_one(
    own: set[str], cluster: set[str] | None, found: list[str]
) -> None:
    """`cluster`: None for a control plane without one."""
    node = replace(ROOM, paths=DONE, authorities=frozenset(own))
    plane = replace(ROOM, paths=DONE if cluster is not None else frozenset({BEGUN}))
    plane = replace(plane, name="cp-01", authorities=frozenset(cluster or ()))
    settings, _ = load_settings({"kubernetes_enabled": True})
    assert settings is not None
    hosts = host(cluster_host=node), host(cluster_host=plane)
    assert [each.code for each in ROLE.beside(None, settings.of(ROLE), *hosts)] == found
    settings, _ = load_settings({})
    assert settings is not None
    assert not list(ROLE.beside(None, settings.of(ROLE), *hosts))
    bare = host(cluster_host=replace(node, paths=frozenset()))
    assert not list(ROLE.beside(None, settings.of(ROLE), bare, hosts[1]))


@pytest.mark.parametrize(("plane", "version", "found"), [
    ("1.36.3", None, []),
    ("1.35.1", None, ["GF961"]),  # the catalog has gone on since the cluster was created
    ("1.35.1", "1.36", ["GF961"]),
    ("1.35.1", "1.35", []),
    ("1.36.3", "1.35", []),
])  # fmt: skip
def test_a_host_does_not_get_a_newer_minor_than_its_control_plane(
    plane: str, version: str | None, found: list[str]
) -> None:
    settings, _ = load_settings({"kubernetes_enabled": True})
    assert settings is not None
    plan, own = plan_of(host(), version=version), settings.of(ROLE)
    assert [each.code for each in ROLE.beside(plan, own, host(), joined(plane))] == found
    assert not list(ROLE.beside(plan, own, host(), host()))


def test_a_run_that_ended_between_packages_and_kubeadm_goes_on() -> None:
    room = replace(ROOM, paths=frozenset({INSTALLING[0]}))
    assert codes(node_of(host(kubelet=True, cluster_host=room))) == []


def test_a_node_stays_at_its_minor_where_none_is_requested() -> None:
    assert plan_of(joined("1.35.1")).version == "1.35.1"


def test_a_broken_off_start_is_reset_first() -> None:
    room = replace(ROOM, paths=frozenset({BEGUN, "/etc/kubernetes/manifests/etcd.yaml"}))
    facts = host(cluster_host=room)
    assert codes(node_of(facts)) == []
    assert plan_of(facts).reset
    assert not plan_of(facts).joined


@pytest.mark.parametrize("text", ["", "version = 2\n", "version = 3\n"])
@pytest.mark.parametrize("driver", ["systemd", "cgroupfs"])
def test_containerd_gets_what_the_kubelet_requires(text: str, driver: str) -> None:
    facts = host(files={CONFIG: ManagedFile(CONFIG, text)})
    plan = plan_of(facts, kubelet={"cgroupDriver": driver}).containerd
    assert plan is not None
    assert plan.change is not None
    assert plan.change.after is not None
    assert ("SystemdCgroup = true" in plan.change.after) == (driver == "systemd")
    assert "/etc/containerd/certs.d" in plan.change.after
    assert "registry.k8s.io/pause:3.10.2" in plan.change.after
    again = host(files={CONFIG: ManagedFile(CONFIG, plan.change.after)})
    second = plan_of(again, kubelet={"cgroupDriver": driver}).containerd
    assert second is not None
    assert second.change is None


def test_containerd_gets_settings_of_the_toolkit_and_of_the_kubelet() -> None:
    """Both roles write the file in one run: the second on top of the first."""
    node = node_of(host())
    plan = node.of(ROLE)
    assert plan is not None
    assert plan.containerd is not None
    assert plan.containerd.change is not None
    text = plan.containerd.change.after or ""
    assert "nvidia-container-runtime" in text
    assert "certs.d" in text
    assert text.count("SystemdCgroup = true") == 2


def test_mirrors_are_files_of_containerd() -> None:
    url = "http://mirror/v2/registry.k8s.io"
    mirrors = {"registry.k8s.io": url, "../../etc/x": url}
    files = {file.path: file.content for file in plan_of(host(), registry_mirrors=mirrors).files}
    assert f'server = "{url}"' in str(files["/etc/containerd/certs.d/registry.k8s.io/hosts.toml"])
    assert all(".." not in path.split("/") for path in files)


def test_steps_name_the_part() -> None:
    listed = "\n".join(steps(node_of(host(), PLANE)))
    assert "kubernetes: start the control plane" in listed
    listed = "\n".join(steps(node_of(host(), WORKER)))
    assert "kubernetes: join the cluster of cp-01" in listed
