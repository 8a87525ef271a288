"""Packages of kernel headers: their name depends on the vendor of the running kernel."""

from __future__ import annotations

import re

import pytest

from gpufleet.driver.choice import DriverChoice
from gpufleet.driver.resolve import resolve_driver
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.kernels import kernel_flavour
from gpufleet.facts.model import Kernel, Package
from gpufleet.node.catalog import load_catalog
from gpufleet.packages.trial import KERNEL, apt_refusal, read_rpm_trial, rpm_refusal
from tests.unit.hosts import bare_host, resolved_transaction

T4 = 0x1EB8
KERNELS = [
    ("amzn2023", "6.12.37-61.105.amzn2023.x86_64", "kernel6.12-devel-{kernel}"),
    ("amzn2023", "6.18.8-9.213.amzn2023.x86_64", "kernel6.18-devel-{kernel}"),
    ("amzn2023", "7.2.1-9.213.amzn2023.x86_64", "kernel7.2-devel-{kernel}"),
    ("amzn2023", "6.1.134-152.225.amzn2023.x86_64", "kernel-devel-{kernel}"),
    ("rhel8", "5.4.17-2136.318.7.1.el8uek.x86_64", "kernel-uek-devel-{kernel}"),
    ("rhel9", "5.15.0-209.161.7.2.el9uek.aarch64", "kernel-uek-devel-{kernel}"),
    (
        "rhel9",
        "6.12.0-100.28.2.el9uek.aarch64+64k",
        "kernel-uek64k-devel-6.12.0-100.28.2.el9uek.aarch64",
    ),
    ("rhel9", "5.14.0-427.13.1.el9_4.aarch64", "kernel-devel-{kernel}"),
    (
        "rhel9",
        "5.14.0-427.13.1.el9_4.aarch64+64k",
        "kernel-64k-devel-5.14.0-427.13.1.el9_4.aarch64",
    ),
    ("rhel9", "5.14.0-570.el9_6.x86_64+rt", "kernel-rt-devel-5.14.0-570.el9_6.x86_64"),
    ("rhel9", "5.14.0-570.el9_6.x86_64+debug", "kernel-debug-devel-5.14.0-570.el9_6.x86_64"),
    ("rhel8", "4.18.0-553.rt7.342.el8_10.x86_64", "kernel-rt-devel-{kernel}"),
    ("rhel7", "3.10.0-1160.119.1.el7.centos.plus.x86_64", "kernel-plus-devel-{kernel}"),
    ("rhel9", "6.1.112-1.el9.elrepo.x86_64", "kernel-lt-devel-{kernel}"),
    ("rhel9", "6.11.2-1.el9.elrepo.x86_64", "kernel-ml-devel-{kernel}"),
    ("sles15", "6.4.0-150600.8.37-azure", "kernel-azure-devel=6.4.0-150600.8.37"),
    ("debian12", "6.2.16-3-pve", "pve-headers-{kernel}"),
    ("debian12", "6.8.12-4-pve", "proxmox-headers-{kernel}"),
    ("debian13", "6.14.11-2-pve", "proxmox-headers-{kernel}"),
    ("debian12", "6.1.0-27-cloud-amd64", "linux-headers-{kernel}"),
    ("debian12", "6.12.9-1-liquorix-amd64", "linux-headers-{kernel}"),
    ("debian12", "6.6.51+rpt-rpi-v8", "linux-headers-{kernel}"),
    ("ubuntu2204", "6.5.0-1018-oracle", "linux-headers-{kernel}"),
    ("ubuntu2404", "6.8.0-1010-azure-nvidia", "linux-headers-{kernel}"),
    ("ubuntu2404", "6.8.0-1014-nvidia-64k", "linux-headers-{kernel}"),
]


@pytest.mark.parametrize(
    ("release", "metapackages", "flavour"),
    [
        ("6.14.0-24-generic", {"generic-hwe-24.04": "6.14.0-24.24~24.04.1"}, "generic-hwe-24.04"),
        (
            "6.8.0-64-generic",
            {"generic": "6.8.0-64.67", "generic-hwe-24.04": "6.14.0-24.24~24.04.1"},
            "generic",
        ),
        ("5.15.0-122-generic", {"generic": "5.15.0.122.122"}, "generic"),
        ("6.8.0-1029-aws", {"aws-lts-24.04": "6.8.0-1029.31"}, "aws-lts-24.04"),
        ("6.8.0-1014-nvidia-64k", {"nvidia": "6.8.0-1014.15"}, "nvidia-64k"),
        ("6.14.0-24-generic", {"virtual-hwe-24.04": "6.14.0-24.24~24.04.1"}, "generic-hwe-24.04"),
        ("6.14.0-1011-oem", {"oem-24.04c": "6.14.0-1011.11"}, "oem-24.04c"),
        ("5.14.0-427.13.1.el9_4.x86_64", {}, ""),
    ],
)
def test_the_flavour_is_that_of_the_metapackage_of_the_kernel(
    release: str, metapackages: dict[str, str], flavour: str
) -> None:
    names = {f"linux-image-{end}": version for end, version in metapackages.items()}
    packages = {name: Package(name, version, "amd64") for name, version in names.items()}
    facts = bare_host(packages=packages, kernel=Kernel(release, "x86_64", headers=False))
    assert kernel_flavour(facts) == flavour


def choice_for(distribution: str, kernel: str, architecture: str = "x86_64") -> DriverChoice:
    return resolve_driver(
        load_catalog(),
        distribution=load_catalog().distribution(distribution) or distribution,
        architecture=architecture,
        kernel=kernel,
        devices=[T4],
        nvswitch=False,
        settings=DriverSettings(),
    )


@pytest.mark.parametrize(("distribution", "kernel", "package"), KERNELS)
def test_headers_have_the_name_that_the_kernel_s_vendor_gives(
    distribution: str, kernel: str, package: str
) -> None:
    assert choice_for(distribution, kernel).packages.headers == (package.format(kernel=kernel),)


def test_amazon_linux_on_graviton_has_a_repository() -> None:
    choice = choice_for("amzn2023", "6.1.134-152.225.amzn2023.aarch64", "aarch64")
    assert not choice.blocked
    assert choice.repository
    assert choice.repository.url.endswith("/amzn2023/sbsa/")


@pytest.mark.parametrize(
    "name",
    ["kernel6.12-devel-6.12.37-61.105.amzn2023.x86_64", "kernel-uek-devel-5.4.17-1.el8uek.x86_64"],
)
def test_headers_that_no_repository_has_are_named_as_such_on_rpm(name: str) -> None:
    wanted = resolved_transaction(prerequisites=(name,), facts=bare_host(package_manager="dnf"))
    found = rpm_refusal(read_rpm_trial([f"No match for argument: {name}"]), wanted)
    assert found
    assert (found.code, name in found.message) == ("GF323", True)


def test_headers_that_no_archive_has_are_named_as_such_on_apt() -> None:
    name = "proxmox-headers-6.8.12-4-pve"
    said = [f"E: Unable to locate package {name}"]
    found = apt_refusal(said, resolved_transaction(prerequisites=(name,)), "apt-get -s install")
    assert found
    assert found.code == "GF323"
    assert "where it came from" in found.remedy


@pytest.mark.parametrize(
    "name", ["kernel6.12", "kernel-64k-core", "kernel-uek-core", "kernel", "kernel-ml"]
)
def test_a_new_kernel_is_noticed_whatever_its_name(name: str) -> None:
    trial = read_rpm_trial(["Installing:", f" {name}  x86_64  1  base  1 M"])
    assert trial.kernels == (name,)


@pytest.mark.parametrize("name", ["proxmox-kernel-6.8.12-5-pve-signed", "linux-image-6.8.0-1-aws"])
def test_a_new_kernel_of_apt_is_noticed_whatever_its_name(name: str) -> None:
    said = [f"Inst {name} (1 x [amd64])"]
    found = apt_refusal(said, resolved_transaction(), "apt-get -s install")
    assert found
    assert f"{name} (a new kernel)" in found.message


@pytest.mark.parametrize(
    "name", ["kernel-devel", "kernel6.12-devel", "kernel-headers", "kernel-tools", "kernel-modules"]
)
def test_what_is_no_kernel_is_none(name: str) -> None:
    assert not re.fullmatch(KERNEL, name)


def test_the_modules_of_a_driver_that_the_source_lacks_stay() -> None:
    """Otherwise each run would load the open modules of a driver that has none (xnvme/aisio#67)."""
    catalog = load_catalog()
    choice = resolve_driver(
        catalog,
        distribution=catalog.distribution("ubuntu2404") or "ubuntu2404",
        architecture="x86_64",
        kernel="6.8.0-64-generic",
        devices=[0x1DB4],
        nvswitch=False,
        settings=DriverSettings(source="distro", branch="570"),
        installed=("570", "proprietary"),
    )
    assert choice.modules == "proprietary"
