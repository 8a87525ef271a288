"""The Kubernetes plan of a host: its part, its packages, its files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.facts.model import (
    ManagedFile,
    NodeFacts,
)
from gpufleet.kubernetes.containerd import Required, plan_containerd_cri
from gpufleet.kubernetes.notes import (
    JOINED,
    KUBERNETES_BEGUN_PATH,
    KUBERNETES_READY_PATH,
    NETWORKED,
)
from gpufleet.kubernetes.record import KubernetesEntry
from gpufleet.kubernetes.role import ROLE
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node, plan_steps
from gpufleet.node.settings import load_node_settings
from gpufleet.role.place import Place
from gpufleet.toolkit.record import FilePart
from tests.unit.hosts import record_of
from tests.unit.kubernetes.cluster_hosts import (
    CONFIG,
    CONTAINERD,
    DONE,
    PLANE,
    ROOM,
    WORKER,
    codes,
    host,
    joined,
    node_of,
    plan_of,
)

MIRRORS = {"registry.k8s.io": "http://mirror/v2/registry.k8s.io"}


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
    settings, _ = load_node_settings({})
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
    assert (plan.version, plan.transaction.version is not None, plan.needed) == (
        wanted,
        exact,
        True,
    )
    minor = ".".join(wanted.split(".")[:2])
    assert plan.repository.repository is not None
    assert plan.repository.repository.url == f"https://pkgs.k8s.io/core:/stable:/v{minor}/deb/"


@pytest.mark.parametrize(("wanted", "refused"), [("1.36", False), ("1.36.2", True), ("1.35", True)])
def test_an_upgrade_is_refused(wanted: str, refused: bool) -> None:
    assert codes(node_of(joined(), version=wanted)) == (["GF942"] if refused else [])


def without(*paths: str) -> NodeFacts:
    return replace(joined(), cluster_host=replace(ROOM, paths=DONE - set(paths)))


@pytest.mark.parametrize(
    ("paths", "place", "networks", "waits"),
    [
        ((), PLANE, False, False),
        ((NETWORKED, KUBERNETES_READY_PATH), PLANE, True, True),
        ((NETWORKED, KUBERNETES_READY_PATH), WORKER, False, True),
        ((KUBERNETES_READY_PATH,), PLANE, False, True),
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
    """A run that destroyed the cluster was killed before it removed its notes."""
    room = replace(ROOM, paths=DONE - {JOINED} | {KUBERNETES_BEGUN_PATH})
    plan = plan_of(replace(joined(), cluster_host=room), PLANE)
    assert (plan.reset, plan.networks, plan.waits) == (True, True, True)


def test_missing_packages_of_a_node_are_installed() -> None:
    facts = joined()
    packages = {name: each for name, each in facts.packages.items() if name != "kubeadm"}
    assert plan_of(replace(facts, packages=packages)).needed
    assert codes(node_of(replace(facts, packages=packages))) == []


@pytest.mark.parametrize("version", [None, "1.36", "1.36.3"])
def test_a_missing_package_of_a_node_upgrades_no_other(version: str | None) -> None:
    """The packages are one transaction, which could upgrade the kubelet to the newest patch."""
    facts = joined()
    packages = {name: each for name, each in facts.packages.items() if name != "kubectl"}
    plan = plan_of(replace(facts, packages=packages), version=version)
    assert (plan.transaction.version, plan.version) == ("1.36.3", "1.36.3")


def test_a_node_newer_than_the_catalog_stays() -> None:
    facts = joined("1.99.1", runtimes={"containerd": replace(CONTAINERD, version="2.1.0")})
    assert codes(node_of(facts)) == []
    assert codes(node_of(facts, version="1.99.1")) == ["GF931"]


def test_a_node_stays_at_its_minor_where_none_is_requested() -> None:
    assert plan_of(joined("1.35.1")).version == "1.35.1"


def test_a_broken_off_start_is_reset_first() -> None:
    room = replace(
        ROOM, paths=frozenset({KUBERNETES_BEGUN_PATH, "/etc/kubernetes/manifests/etcd.yaml"})
    )
    facts = host(cluster_host=room)
    assert codes(node_of(facts)) == []
    assert plan_of(facts).reset
    assert not plan_of(facts).joined


@pytest.mark.parametrize("text", ["", "version = 2\n", "version = 3\n"])
@pytest.mark.parametrize("driver", ["systemd", "cgroupfs"])
def test_containerd_gets_what_the_kubelet_requires(text: str, driver: str) -> None:
    facts = host(files={CONFIG: ManagedFile(CONFIG, text)})
    data = {"kubelet": {"cgroupDriver": driver}, "registry_mirrors": MIRRORS}
    plan = plan_of(facts, **data).containerd
    assert plan is not None
    assert plan.change is not None
    assert plan.change.after is not None
    assert ("SystemdCgroup = true" in plan.change.after) == (driver == "systemd")
    assert "/etc/containerd/certs.d" in plan.change.after
    assert plan.describe() == {
        "config": CONFIG,
        "changes": True,
        "activation": "restart",
        "reason": f"{CONFIG} changes",
        "postponed": False,
    }
    assert not plan.as_record().default  # the NVIDIA runtime is the toolkit's matter
    assert "registry.k8s.io/pause:3.10.2" in plan.change.after
    again = host(files={CONFIG: ManagedFile(CONFIG, plan.change.after)})
    second = plan_of(again, **data).containerd
    assert second is not None
    assert second.change is None


@pytest.mark.parametrize("name", ["systemdCgroup", "SystemdCgroup"])
def test_an_option_keeps_its_spelling(name: str) -> None:
    """containerd ignores the case of option names: a second spelling would override the first."""
    table = 'plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options'
    text = f"version = 2\n[{table}]\n{name} = false\n"
    plan = plan_of(host(files={CONFIG: ManagedFile(CONFIG, text)})).containerd
    assert plan is not None
    assert plan.change is not None
    runc = (plan.change.after or "").partition("# The next tables")[0]
    assert f"{name} = true" in runc
    assert runc.lower().count("systemdcgroup") == 1


@pytest.mark.parametrize("options", ["", "SystemdCgroup = false\n"])
def test_a_second_run_keeps_the_driver(options: str) -> None:
    """The record has the driver of control groups that the first run set."""
    table = 'plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options'
    text = f"version = 2\n[{table}]\n{options}" if options else "version = 2\n"
    required = Required(systemd_cgroups=True, pause="")
    facts = host(files={CONFIG: ManagedFile(CONFIG, text)})
    first, _ = plan_containerd_cri(facts, load_catalog(), required, facts.texts)
    assert first is not None
    assert first.change is not None
    part = first.as_record()
    entry = KubernetesEntry(containerd=FilePart(config=part.config, changes=part.changes))
    record = entry.as_json()
    again = replace(facts, provenance=record_of(kubernetes=record))
    texts = {CONFIG: first.change.after or ""}
    second, _ = plan_containerd_cri(again, load_catalog(), required, texts)
    assert second is not None
    assert second.change is None


def test_containerd_gets_settings_of_the_toolkit_and_of_the_kubelet() -> None:
    """Both roles change the file in one run. The second one keeps the changes of the first."""
    node = node_of(host(), registry_mirrors=MIRRORS)
    plan = node.of(ROLE)
    assert plan is not None
    assert plan.containerd is not None
    assert plan.containerd.change is not None
    text = plan.containerd.change.after or ""
    assert "nvidia-container-runtime" in text
    assert "certs.d" in text
    assert text.count("SystemdCgroup = true") == 2


def test_a_node_is_converged_once_containerd_needs_no_change() -> None:
    plan = replace(plan_of(joined()), files=(), hold=(), archives=())
    missing = plan_of(host()).containerd
    assert missing is not None
    assert missing.changes
    settled = replace(missing, change=None)
    assert not settled.changes
    assert replace(plan, containerd=None).converged
    assert replace(plan, containerd=settled).converged
    assert not replace(plan, containerd=missing).converged


def test_mirrors_are_files_of_containerd() -> None:
    url = "http://mirror/v2/registry.k8s.io"
    mirrors = {"registry.k8s.io": url, "../../etc/x": url}
    files = {file.path: file.content for file in plan_of(host(), registry_mirrors=mirrors).files}
    assert f'server = "{url}"' in str(files["/etc/containerd/certs.d/registry.k8s.io/hosts.toml"])
    assert all(".." not in path.split("/") for path in files)


@pytest.mark.parametrize("url", ["https://mirror.example.com", "https://mirror.example.com/"])
def test_a_mirror_without_a_path_is_the_root_of_its_registry(url: str) -> None:
    """`override_path` also leaves out the /v2 that each registry has."""
    plan = plan_of(host(), registry_mirrors={"docker.io": url})
    text = next(str(file.content) for file in plan.files if "docker.io" in file.path)
    assert '[host."https://mirror.example.com/v2"]' in text
    assert 'server = "https://mirror.example.com/v2"' in text


def test_steps_name_the_part() -> None:
    listed = "\n".join(plan_steps(node_of(host(), PLANE)))
    assert "kubernetes: start the control plane" in listed
    listed = "\n".join(plan_steps(node_of(host(), WORKER)))
    assert "kubernetes: join the cluster of cp-01" in listed
