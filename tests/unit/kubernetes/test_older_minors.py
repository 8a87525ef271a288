"""Older minors of Kubernetes: kubeadm's file, containerd's file, and findings that stop a host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpufleet.kubernetes.kubeadm import (
    JoinToken,
    certificates_configuration,
    init_configuration,
    join_configuration,
)
from gpufleet.node.catalog import load_catalog
from tests.unit.kubernetes.cluster_hosts import (
    CONTAINERD,
    PLANE,
    ROOM,
    codes,
    host,
    node_of,
    plan_of,
)
from tests.unit.kubernetes.kubeadm_files_setup import settings_of

pytestmark = pytest.mark.claim(
    "kubeadm's configuration fits Kubernetes 1.28 to 1.37; 1.36 and 1.32 were run.",
    level=1,
)

GOLDEN = Path(__file__).parent / "golden"
KNOWN = load_catalog().kubernetes
MINORS = [f"1.{minor}" for minor in range(28, 38)]
TOKEN = JoinToken("10.0.0.1:6443", "abcdef.0123456789abcdef", "sha256:" + "0" * 64, "1.30.14")
OLD_CGROUPS = {"cluster_host": replace(ROOM, cgroups=1)}
EL8 = "4.18.0-553.el8_10.x86_64"


def written(api: str) -> str:
    """The files of a control plane, of a worker and of a further control plane."""
    settings = settings_of(
        labels={"rack": "r7"}, kubelet={"maxPods": 50}, kube_proxy={"mode": "iptables"},
        etcd_tag="3.5.24-0", endpoint="k8s.lab.example.com",
    )  # fmt: skip
    parts = (
        init_configuration(settings, "1.30.14", api),
        join_configuration(settings, TOKEN, api),
        join_configuration(settings, replace(TOKEN, key="ab" * 32), api),
        certificates_configuration("ab" * 32, "1.30.14", api),
    )
    return "---\n".join(parts)


@pytest.mark.parametrize("version", ["v1beta3", "v1beta4"])
def test_the_files_of_kubeadm(version: str) -> None:
    expected = (GOLDEN / f"kubeadm-{version}.yaml").read_text()
    assert written(f"kubeadm.k8s.io/{version}") == expected


@pytest.mark.parametrize("minor", MINORS)
def test_a_minor_gets_the_files_that_its_kubeadm_reads(minor: str) -> None:
    plan = plan_of(host(), PLANE, version=minor)
    version = "v1beta3" if minor < "1.31" else "v1beta4"
    assert plan.api == f"kubeadm.k8s.io/{version}"
    assert plan.containerd is not None
    assert plan.containerd.change is not None
    tag = {"1.28": "3.9", "1.31": "3.10", "1.34": "3.10.1", "1.36": "3.10.2"}
    wanted = tag[max(each for each in tag if each <= minor)]
    assert f'"registry.k8s.io/pause:{wanted}"' in (plan.containerd.change.after or "")
    assert plan.repository.repository is not None
    assert f"/core:/stable:/v{minor}/" in plan.repository.repository.url


def test_the_catalog_has_every_minor_between_its_ends() -> None:
    assert (KNOWN.oldest, KNOWN.newest) == (MINORS[0], MINORS[-1])
    assert all(KNOWN.pause_image(minor) for minor in MINORS)


@pytest.mark.parametrize(("version", "facts", "data", "found"), [
    ("1.31", {"release": EL8}, {}, []),
    ("1.32", {"release": EL8}, {}, ["GF994"]),
    ("1.33", {"release": EL8}, {}, ["GF994"]),
    ("1.34", {"release": EL8}, {}, []),
    ("1.32", {"release": "4.19.0-1"}, {}, []),
    ("1.34", OLD_CGROUPS, {}, []),
    ("1.35", OLD_CGROUPS, {}, ["GF932"]),
    ("1.28", {"containerd": "1.5.9"}, {}, ["GF934"]),
    ("1.28", {"containerd": "1.6.0"}, {}, []),
    ("1.37", {"containerd": "1.7.24"}, {}, []),
    ("1.30", OLD_CGROUPS, {"kubelet": {"failCgroupV1": False}}, ["GF995"]),
    ("1.31", OLD_CGROUPS, {"kubelet": {"failCgroupV1": False}}, []),
    ("1.30", {}, {"kube_proxy": {"mode": "nftables"}}, ["GF995"]),
    ("1.30", {}, {"kube_proxy": {"mode": "iptables"}}, []),
    ("1.31", {}, {"kube_proxy": {"mode": "nftables"}}, []),
], ids=str)  # fmt: skip
def test_what_a_minor_requires(
    version: str, facts: dict[str, Any], data: dict[str, Any], found: list[str]
) -> None:
    changes = {key: each for key, each in facts.items() if key == "cluster_host"}
    if "containerd" in facts:
        runtime = replace(CONTAINERD, version=facts["containerd"])
        changes["runtimes"] = {"containerd": runtime}
    if "release" in facts:
        changes["kernel"] = replace(host().kernel, release=facts["release"])
    assert codes(node_of(host(**changes), version=version, **data)) == found


@pytest.mark.parametrize(("version", "ignored"), [("1.34", ()), ("1.35", ("SystemVerification",))])
def test_kubeadm_checks_the_kernel_where_it_takes_old_control_groups(
    version: str, ignored: tuple[str, ...]
) -> None:
    plan = plan_of(host(**OLD_CGROUPS), version=version, kubelet={"failCgroupV1": False})
    assert plan.ignored == ignored
