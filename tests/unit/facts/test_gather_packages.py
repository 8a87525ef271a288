"""The facts command on packages, DKMS and libraries."""

from __future__ import annotations

import re
from importlib import resources

import pytest
from fakehost import FakeHost

from gpufleet.facts.model import NodeFacts
from gpufleet.facts.parse import parse_node_facts
from gpufleet.node.catalog import load_catalog


def facts(host: FakeHost, shell: tuple[str, ...], *paths: str) -> NodeFacts:
    return parse_node_facts(host.gather(shell, paths))


def test_runtime_that_came_without_a_package(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.command("containerd", "exit 1")
    text = "containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b71"
    host.file("/usr/local/bin/containerd", f"#!/bin/sh\necho {text}\n", 0o755)
    assert facts(host, shell).runtimes["containerd"].version == "2.1.4"


def test_containerd_names_its_file_by_a_short_option(
    host: FakeHost, shell: tuple[str, ...]
) -> None:
    """The unit of kOps' nodes (kubernetes/kops, nodeup/pkg/model/containerd.go)."""
    host.file("/etc/containerd/config-kops.toml", "version = 2\n")
    host.file("/usr/lib/systemd/system/containerd.service", "")
    host.says(
        "systemctl",
        "Names=containerd.service\nLoadState=loaded\nActiveState=active\n"
        "ExecStart={ path=/usr/bin/containerd ; argv[]=/usr/bin/containerd -c "
        f"{host.root}/etc/containerd/config-kops.toml --log-level=info ; ignore_errors=no }}\n",
    )
    found = facts(host, shell)
    path = found.runtimes["containerd"].config_path
    assert path == "/etc/containerd/config-kops.toml"
    assert found.texts[path] == "version = 2\n"


@pytest.mark.parametrize(
    "unit", ["snap.k8s.kubelet.service", "k0sworker.service", "k0scontroller.service"]
)
def test_a_distribution_of_kubernetes_has_a_kubelet(
    host: FakeHost, shell: tuple[str, ...], unit: str
) -> None:
    host.file(f"/etc/systemd/system/{unit}", "")
    host.says("systemctl", f"Names={unit}\nLoadState=loaded\nActiveState=active\n")
    assert facts(host, shell).kubelet


def test_rpm_host(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.file("/etc/os-release", 'ID="centos"\nID_LIKE="rhel fedora"\nVERSION_ID="7"\n')
    host.command("yum", "")
    host.says(
        "rpm",
        "nvidia-driver-latest-dkms\tx86_64\t3:550.163.01-1.el7\tinstall ok installed\n"
        "bash\tx86_64\t0:4.2.46-35.el7\tinstall ok installed\n"
        "gcc\tx86_64\t0:4.8.5-44.el7\tinstall ok installed\n"
        "kernel-devel\tx86_64\t0:3.10.0-1-el7\tinstall ok installed\n"
        "kernel-devel\tx86_64\t0:3.10.0-2-el7\tinstall ok installed\n",
    )
    host.file("/etc/yum/pluginconf.d/versionlock.list", "# c\n3:nvidia-driver-*\n")
    host.file("/var/lib/yum/transaction-all.2026-01-01.10:00.00", "x")
    found = facts(host, shell)
    assert found.package_manager == "yum"
    assert found.os.code == "rhel7"
    assert found.packages["nvidia-driver-latest-dkms"].version == "3:550.163.01-1.el7"
    assert found.packages["nvidia-driver-latest-dkms"].upstream == "550.163.01"
    assert found.packages["gcc"].version == "4.8.5-44.el7"
    assert "bash" not in found.packages
    assert {"kernel-devel", "kernel-devel-3.10.0-2-el7"} <= set(found.packages)
    assert found.holds == {"3:nvidia-driver-*"}
    assert found.broken == "an unfinished transaction of yum"


def test_dpkg_host(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.command("apt-get", "")
    host.says(
        "dpkg-query",
        "dpkg\tamd64\t1.21\tinstall ok installed\n"
        "libnvidia-compute-580\tamd64\t580.1-1\thold ok installed\n"
        "libnvidia-compute-580\ti386\t580.1-1\tinstall ok installed\n"
        "nvidia-dkms-580\tamd64\t580.1-1\tinstall ok half-configured\n"
        "nvidia-driver-550\tamd64\t550.1-1\tdeinstall ok config-files\n"
        "vim\tamd64\t9\tinstall ok installed\n"
        "held-one\tamd64\t9\thold ok installed\n"
        "nano\tamd64\t9\tinstall ok unpacked\n",
    )
    host.file("/var/lib/dpkg/updates/0001", "")
    found = facts(host, shell)
    assert found.package_manager == "apt"
    assert found.holds == {"held-one", "libnvidia-compute-580"}
    assert found.packages["nvidia-dkms-580"].state == "ok half-configured"
    assert found.packages["libnvidia-compute-580:i386"].architecture == "i386"
    assert "nvidia-driver-550" not in found.packages
    assert "vim" not in found.packages
    assert found.broken == (
        "nvidia-dkms-580 is half-configured, nano is unpacked, an interrupted run of dpkg"
    )


def test_library_that_the_loader_takes(host: FakeHost, shell: tuple[str, ...]) -> None:
    folder = "/usr/lib/x86_64-linux-gnu"
    for version in ("580.95.05", "550.163.01"):
        host.file(f"{folder}/libnvidia-ml.so.{version}", "")
    host.link(f"{folder}/libnvidia-ml.so.1", "libnvidia-ml.so.550.163.01")
    found = facts(host, shell)
    assert found.library == "550.163.01"


def test_dkms_tree(host: FakeHost, shell: tuple[str, ...]) -> None:
    tree = "/var/lib/dkms/nvidia"
    for version in ("550.163.01", "580.95.05"):
        host.link(f"{tree}/{version}/source", f"/usr/src/nvidia-{version}")
    for kernel in ("6.1.0-9", "6.1.0-10"):
        host.file(f"{tree}/580.95.05/{kernel}/x86_64/module/nvidia.ko", "")
    host.file(f"{tree}/580.95.05/6.1.0-11/x86_64/log/make.log", "")
    host.link(f"{tree}/kernel-6.1.0-9-x86_64", "580.95.05/6.1.0-9/x86_64")
    host.command("dkms", "exit 1")
    assert [(m.name, m.version, m.kernel, m.state) for m in facts(host, shell).dkms] == [
        ("nvidia", "550.163.01", "", "added"),
        ("nvidia", "580.95.05", "6.1.0-10", "built"),
        ("nvidia", "580.95.05", "6.1.0-9", "installed"),
    ]


def test_dkms_with_its_tree_elsewhere(host: FakeHost, shell: tuple[str, ...]) -> None:
    host.says("dkms", "nvidia, 550.163.01, 3.10.0-1160.el7.x86_64, x86_64: installed\n")
    (module,) = facts(host, shell).dkms
    assert (module.version, module.kernel) == ("550.163.01", "3.10.0-1160.el7.x86_64")


def looked_for() -> str:
    """The regular expression of the packages that the facts command reports."""
    text = resources.files("gpufleet.facts.sections").joinpath("packages.sh").read_text()
    lines = re.findall(r"""^families=['"](.*)['"]$""", text, re.MULTILINE)
    return "|".join(line.removeprefix("$families|").replace(r"\$", "$") for line in lines)


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("kernel6.12", True),
        ("kernel6.12-devel", True),
        ("kernel6.18-modules-extra", True),
        ("kernel-uek-core", True),
        ("kernel-64k-devel", True),
        ("kernel-rt-core", True),
        ("kernel-ml", True),
        ("kernel-devel", True),
        ("linux-headers-6.8.0-1010-aws", True),
        ("proxmox-headers-6.8.12-4-pve", True),
        ("pve-kernel-6.2.16-3-pve", True),
        ("dracut", True),
        ("kernel-srpm-macros", False),
        ("kernel-tools-libs", False),
    ],
)
def test_kernels_of_every_vendor_are_looked_for(name: str, reported: bool) -> None:
    assert bool(re.search(looked_for(), name)) is reported


def test_every_package_that_a_driver_is_built_with_is_looked_for() -> None:
    families = looked_for()
    names = {name for found in load_catalog().distributions for name in found.build}
    assert "dkms" in names
    assert sorted(name for name in names if not re.search(families, name)) == []
