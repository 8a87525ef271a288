"""A bundle of a working host has what a new host needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.bundle.models import BundleFile
from gpufleet.bundle.plan import (
    bare_facts,
    bundled_repositories,
    closure_words,
    cluster_images,
    images_on_host,
    key_file,
    own_packages,
    planned_transactions,
    present_packages,
)
from gpufleet.facts.model import (
    ClusterHost,
    GpuProcess,
    ManagedFile,
    NodeFacts,
    OsRelease,
    Package,
    Runtime,
)
from gpufleet.facts.record import EMPTY_RECORD
from gpufleet.kubernetes.notes import JOINED, KUBELET
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, plan_node
from gpufleet.node.settings import load_node_settings
from gpufleet.packages.transaction import PackageTransaction
from tests.unit.hosts import bare_host, converged_host, record_of, resolved_transaction

FLANNEL = load_catalog().kubernetes.flannel
RHEL = OsRelease("rhel", "9.4", ("fedora",), "", "Red Hat Enterprise Linux 9.4")


def plan(facts: NodeFacts, **data: Any) -> NodePlan:
    settings, problems = load_node_settings(data)
    assert settings is not None, problems
    return plan_node(settings, facts, load_catalog(), facts.clock)


def asked(found: NodePlan) -> list[tuple[Any, ...]]:
    assert not found.blockers
    transactions = planned_transactions(found)
    assert transactions
    return [(each.role, each.packages, each.prerequisites, each.version) for each in transactions]


@pytest.mark.parametrize("data", [{}, {"driver_branch": "570"}, {"exporter_enabled": True}])
def test_a_working_host_asks_for_what_a_new_one_does(data: dict[str, Any]) -> None:
    work = (GpuProcess(7, "python", ("/dev/nvidia0",)),)
    working = converged_host(gpu_processes=work, gpu_pods=1, kubelet=True)
    new = bare_host(kubelet=True)
    assert asked(plan(bare_facts(working), **data)) == asked(plan(new, **data))


def test_packages_that_gpufleet_added_count_as_absent() -> None:
    record = record_of(driver={"version": "580.1", "added": ["dkms", "gcc"]})
    working = converged_host(provenance=record)
    transactions = planned_transactions(plan(bare_facts(working)))
    own = own_packages(working, transactions)
    assert {"dkms", "gcc", "nvidia-container-toolkit"} <= set(own)
    assert "libc6" not in own


def test_a_node_asks_for_its_own_version_and_for_gpufleets_containerd() -> None:
    containerd = Runtime("containerd", "1.7.2", "containerd.service", "/x", running=True)
    kubelet = Package("kubelet", "1.35.1-1.1", "amd64")
    facts = converged_host(
        runtimes={"containerd": containerd},
        packages={"kubelet": kubelet, "containerd": Package("containerd", "1.7.2", "amd64")},
        provenance=record_of(containerd={"packages": {"containerd": "1.7.2"}}),
    )
    joined = replace(facts.cluster_host, paths=frozenset({JOINED, KUBELET}))
    facts = replace(facts, cluster_host=joined)
    found = bare_facts(facts)
    assert (set(found.packages), set(found.runtimes)) == ({"kubelet"}, set())
    other = bare_facts(replace(facts, provenance=EMPTY_RECORD, cluster_host=ClusterHost()))
    assert (set(other.packages), set(other.runtimes)) == (set(), {"containerd"})


def test_installed_versions_are_kept_for_a_roll_back() -> None:
    versions = {
        "driver-580": "580.1-1",
        "nvidia-modprobe": "580.1-1",  # a companion
        "same": "595.1-1",
        "removed": "580.1-1",
        "toolkit": "1.18",
        "exporter": "4.7",
    }
    packages = {name: Package(name, version, "amd64") for name, version in versions.items()}
    packages["removed"] = replace(packages["removed"], state="deinstall config-files")
    facts = converged_host(packages=packages)

    def resolved(role: str, **more: Any) -> PackageTransaction:
        fields = {"facts": facts, "role": role, "patterns": (), "companions": ()} | more
        names = tuple(name for name, _ in more["install"])
        return replace(resolved_transaction(**fields), packages=names)

    driver = resolved(
        "driver",
        install=(("driver-595", "595.1-1"), ("same", "595.1-1")),
        companions=("nvidia-modprobe",),
        patterns=("driver-.*", "removed"),
    )
    toolkit = resolved("toolkit", install=(("toolkit", "1.19"),))
    exporter = resolved("exporter", install=(("exporter", "4.8"),))
    found = present_packages((driver, toolkit, exporter), facts)
    assert {each.role: each.words for each in found} == {
        "driver": ("driver-580=580.1-1", "nvidia-modprobe=580.1-1"),
        "toolkit": ("toolkit=1.18",),
    }
    assert present_packages((driver, toolkit), bare_host()) == ()


def test_an_image_that_docker_pulls_is_named_as_lacking() -> None:
    docker = Runtime("docker", "28.0", "docker.service", "/etc/docker/daemon.json", running=True)
    files = {docker.config_path: ManagedFile(docker.config_path, None)}
    facts = bare_host(runtimes={"docker": docker}, files=files)
    (lacking,) = images_on_host(plan(facts, exporter_enabled=True, exporter_mode="docker"))
    assert "dcgm-exporter" in lacking.what
    assert images_on_host(plan(facts, exporter_mode="systemd")) == ()


LISTED = ("registry.k8s.io/etcd:3.6.5-0", "registry.k8s.io/pause:3.10.2")


@pytest.mark.parametrize(
    ("data", "listed", "found"),
    [
        ({}, (), {f"{FLANNEL.image}:{FLANNEL.version}", FLANNEL.plugin}),
        ({"network": "none"}, LISTED, set(LISTED)),
        (
            {"network": "none", "etcd_tag": "3.5.1"},
            LISTED,
            {"registry.k8s.io/etcd:3.5.1", LISTED[1]},
        ),
        (
            {},
            LISTED,
            {*LISTED, f"{FLANNEL.image}:{FLANNEL.version}", FLANNEL.plugin},
        ),
    ],
)
def test_images_of_nodes_are_those_of_kubeadm_and_of_the_network(
    data: dict[str, str], listed: tuple[str, ...], found: set[str]
) -> None:
    settings = KubernetesSettings.model_validate(data)
    assert set(cluster_images(listed, settings, load_catalog().kubernetes)) == found


@pytest.mark.parametrize(
    ("system", "manager", "words"),
    [
        (None, "apt", ("a=1:2-3", "b", "c")),
        (RHEL, "dnf", ("a-2-3", "b", "c", "python3-dnf-plugin-versionlock")),
    ],
)
def test_words_are_those_of_the_package_manager(
    system: OsRelease | None, manager: Any, words: tuple[str, ...]
) -> None:
    facts = bare_host(package_manager=manager)
    facts = bare_host(package_manager=manager, os=system or facts.os)
    chosen = resolved_transaction(
        facts=facts, install=(("a", "1:2-3"),), companions=("b",), prerequisites=("c",)
    )
    assert closure_words(chosen) == words


@pytest.mark.parametrize(
    ("facts", "data", "repositories"),
    [
        (
            bare_host(),
            {},
            {
                "driver_repo_url": "developer.download.nvidia.com/compute/cuda/repos",
                "toolkit_repo_url": "nvidia.github.io/libnvidia-container",
            },
        ),
        (
            bare_host(os=RHEL, package_manager="dnf"),
            {
                "driver_repo_url": "http://m.example.com:8080/cuda",
                "driver_repo_key_fingerprint": "A" * 40,
            },
            {
                "driver_repo_url": "m.example.com-8080/cuda",
                "toolkit_repo_url": "nvidia.github.io/libnvidia-container",
            },
        ),
    ],
)
def test_the_keys_of_the_inventory_name_the_folders_of_a_bundle(
    facts: NodeFacts, data: dict[str, Any], repositories: dict[str, str]
) -> None:
    transactions = planned_transactions(plan(facts, **data))
    found = bundled_repositories(transactions, [])
    assert {each.setting: each.path for each in found} == repositories
    for each in transactions:
        repository = each.repository.repository
        assert repository
        assert key_file(repository, b"key").path.startswith(repositories[f"{each.role}_repo_url"])


def test_other_repositories_are_named_by_their_address() -> None:
    urls = ["http://b.example.com/ubuntu/dists/noble/InRelease",
            "http://b.example.com/ubuntu/dists/noble-updates/main/binary-amd64/Packages.xz",
            "http://c.example.com/9/BaseOS/repodata/repomd.xml",
            "http://d.example.com/flat/./InRelease"]  # fmt: skip
    files = [BundleFile(url.removeprefix("http://").replace("/./", "/"), "", 0, url, "metadata")
             for url in urls]  # fmt: skip
    found = bundled_repositories((), files)
    assert {each.path: each.source for each in found} == {
        "b.example.com/ubuntu": "http://b.example.com/ubuntu",
        "c.example.com/9/BaseOS": "http://c.example.com/9/BaseOS",
        "d.example.com/flat": "http://d.example.com/flat",
    }
