"""Drivers under package names that NVIDIA and distributions used before."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gpufleet.facts.model import Kernel, OsRelease, Package, PciDevice
from gpufleet.facts.sections.drivers import is_driver_packaged
from gpufleet.node.catalog import load_catalog
from gpufleet.packages.transaction import PackageTransaction, resolve_transaction
from gpufleet.packages.trial import read_rpm_trial, rpm_refusal
from tests.unit.hosts import bare_host, plan_for

T4 = PciDevice("0000:17:00.0", 0x1EB8, 0x030200)
CENTOS = OsRelease("centos", "7", ("rhel", "fedora"), "", "CentOS Linux 7")
OF_418 = {
    "dkms-nvidia": "3:418.67-1.el7",
    "nvidia-driver": "3:418.67-4.el7",
    "nvidia-driver-libs": "3:418.67-4.el7",
    "nvidia-driver-NVML": "3:418.67-4.el7",
    "nvidia-driver-cuda": "3:418.67-4.el7",
    "nvidia-driver-cuda-libs": "3:418.67-4.el7",
    "nvidia-modprobe": "3:418.67-1.el7",
    "nvidia-persistenced": "3:418.67-1.el7",
}


def test_dkms_nvidia_leaves_with_the_driver_that_it_was_of() -> None:
    facts = bare_host(
        os=CENTOS,
        kernel=Kernel("3.10.0-1160.119.1.el7.x86_64", "x86_64", headers=True),
        package_manager="yum",
        pci=(T4,),
        packages={name: Package(name, version, "x86_64") for name, version in OF_418.items()},
    )
    plan = plan_for(facts)
    assert set(plan.transaction.installed) == set(OF_418)
    assert "GF512" in {finding.code for finding in plan.findings}
    there = dict.fromkeys(plan.packages, ("3:550.163.01-1.el7",))
    chosen = resolve_transaction(plan.transaction, there)
    assert isinstance(chosen, PackageTransaction)
    assert "dkms-nvidia" in chosen.remove
    rows = [f" {name}  x86_64  3:418.67  @cuda  1 M" for name in OF_418]
    assert rpm_refusal(read_rpm_trial(["Removing:", *rows]), chosen) is None


@pytest.mark.parametrize(
    ("style", "name"),
    [
        ("rpm", "dkms-nvidia"),
        ("rpm", "nvidia-kmod"),
        ("rpm", "kmod-nvidia-branch-418"),
        ("rpm", "nvidia-driver-branch-418-cuda"),
        ("deb", "nvidia-384"),
        ("deb", "nvidia-390-dev"),
        ("deb", "libcuda1-384"),
        ("deb", "nvidia-opencl-icd-396"),
        ("deb", "nvidia-fabricmanager-450"),
        ("deb", "libnvidia-ifr1-450"),
        ("deb", "nvidia-headless-no-dkms-470-server"),
    ],
)
def test_former_names_are_of_the_driver(style: str, name: str) -> None:
    families = load_catalog().packages.families
    patterns = next(family.patterns for family in families if family.style == style)
    assert any(re.fullmatch(pattern, name) for pattern in patterns)


def test_a_module_of_dkms_nvidia_is_of_a_package() -> None:
    there = Package("dkms-nvidia", "3:418.67-1.el7", "x86_64")
    assert is_driver_packaged({there.name: there}, ())
    assert not is_driver_packaged({"dkms": replace(there, name="dkms")}, ())
