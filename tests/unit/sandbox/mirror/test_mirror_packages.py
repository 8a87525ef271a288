"""The mirror has the catalog's packages, with dependencies like NVIDIA's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest

from gpufleet.driver.choice import DriverChoice
from gpufleet.driver.resolve import resolve_driver
from gpufleet.driver.settings import DriverSettings
from gpufleet.exporter.resolve import resolve_exporter
from gpufleet.exporter.settings import ExporterSettings
from gpufleet.node.catalog import load_catalog
from gpufleet.toolkit.resolve import resolve_toolkit
from gpufleet.toolkit.settings import ToolkitSettings
from gpufleet_sandbox.kinds import KINDS
from gpufleet_sandbox.machine.kernels import KERNELS
from gpufleet_sandbox.mirror.contents import contents, distributions, driver_versions
from gpufleet_sandbox.mirror.model import Package

T4 = 0x1EB8  # supports both kinds of modules, and every branch
ARCHIVES = {"rhel7": "el7"}
Listed = dict[str, dict[str, list[Package]]]


def choices(code: str) -> Iterator[tuple[str, DriverChoice]]:
    """Every driver choice of the catalog for the versions of the mirror."""
    archive = contents()["archives"][ARCHIVES.get(code, code)]
    for version in driver_versions(code):
        for modules in ("open", "proprietary"):
            for profile in ("compute", "full"):
                settings = DriverSettings(version=version, modules=modules, profile=profile)
                yield (
                    version,
                    resolve_driver(
                        load_catalog(),
                        distribution=load_catalog().distribution(code) or code,
                        architecture="x86_64",
                        kernel=next(iter(archive["kernels"])),
                        devices=(T4,),
                        nvswitch=True,
                        settings=settings,
                        today=date(2026, 11, 20),
                    ),
                )


@pytest.mark.parametrize("code", distributions())
def test_the_mirror_has_every_package_of_the_catalog(by_path: Listed, code: str) -> None:
    cuda = by_path[f"compute/cuda/repos/{code}/x86_64"]
    seen = 0
    for version, choice in choices(code):
        names = choice.packages
        for name in (*names.install, *names.fabric_manager):
            versions = [package.version for package in cuda.get(name, [])]
            assert [v for v in versions if f":{version}-" in f":{v.split(':')[-1]}"], (
                name,
                version,
            )
            seen += 1
    assert seen > 50


@pytest.mark.parametrize("code", distributions())
def test_headers_of_the_running_kernel_are_in_the_archive(by_path: Listed, code: str) -> None:
    archive = by_path[f"archive/{ARCHIVES.get(code, code)}"]
    known = set(archive) | {f"{p.name}-{p.version}.x86_64" for ps in archive.values() for p in ps}
    for _, choice in choices(code):
        assert set(choice.packages.headers) <= known


def test_kernels_are_those_of_the_hosts() -> None:
    releases = {kernel.release for kernel in KERNELS}
    for kind in KINDS.values():
        if kind.archive:
            listed = list(contents()["archives"][kind.archive]["kernels"])
            assert listed == [kind.kernel, kind.next_kernel]
            assert set(listed) <= releases


@pytest.mark.parametrize("code", distributions())
def test_the_mirror_has_the_toolkit_that_the_catalog_chooses(code: str) -> None:
    choice = resolve_toolkit(
        load_catalog(),
        distribution=load_catalog().distribution(code) or code,
        architecture="x86_64",
        settings=ToolkitSettings(),
    )
    assert choice.version in contents()["toolkit"]


def test_packages_of_a_family_depend_on_one_version(by_path: Listed) -> None:
    cuda = by_path["compute/cuda/repos/ubuntu2204/x86_64"]
    dkms = cuda["nvidia-dkms-580-open"][0]
    assert dkms.version == "580.159.03-0ubuntu1"
    assert set(dkms.relations["Depends"]) == {
        "nvidia-kernel-source-580-open (= 580.159.03-0ubuntu1)",
        "nvidia-kernel-common-580 (= 580.159.03-0ubuntu1)",
        "dkms",
    }
    assert "nvidia-dkms-kernel" in dkms.relations["Conflicts"]  # one branch at a time


def test_names_shared_by_all_branches_have_no_upper_limit(by_path: Listed) -> None:
    cuda = by_path["compute/cuda/repos/ubuntu2204/x86_64"]
    meta = cuda["nvidia-open-580"][0]
    assert "nvidia-modprobe (>= 580.159.03)" in meta.relations["Depends"]


def test_nvidia_smi_is_in_exactly_one_package_of_a_family(by_path: Listed) -> None:
    for code in distributions():
        owners: dict[str, list[str]] = {version: [] for version in driver_versions(code)}
        for packages in by_path[f"compute/cuda/repos/{code}/x86_64"].values():
            for package in packages:
                if "/usr/bin/nvidia-smi" in package.files:
                    owners[package.version.split(":")[-1].split("-")[0]].append(package.name)
        assert all(len(names) == 1 for names in owners.values()), (code, owners)


def test_el7_packages_have_an_epoch_except_the_fabric_manager(by_path: Listed) -> None:
    cuda = by_path["compute/cuda/repos/rhel7/x86_64"]
    assert "3:550.163.01-1.el7" in [p.version for p in cuda["kmod-nvidia-latest-dkms"]]
    assert "550.163.01-1.el7" in [p.version for p in cuda["nvidia-fabric-manager"]]
    newest = cuda["nvidia-driver-latest-dkms-cuda"][-1]
    assert newest.filename == "nvidia-driver-latest-dkms-cuda-550.163.01-1.el7.x86_64.rpm"
    assert "nvidia-driver-latest-dkms-cuda-libs = 3:550.163.01" in newest.relations["Requires"]


def test_toolkit_packages_depend_on_each_other_at_the_same_version(by_path: Listed) -> None:
    for path, equals in (("deb/amd64", "(= 1.18.2-1)"), ("rpm/x86_64", "= 1.18.2-1")):
        packages = by_path[f"libnvidia-container/stable/{path}"]
        top = packages["nvidia-container-toolkit"][0]
        needs = top.relations["Depends" if "deb" in path else "Requires"]
        assert set(needs) == {
            f"nvidia-container-toolkit-base {equals}",
            f"libnvidia-container-tools {equals}",
        }


def test_descriptions_identify_packages_as_imitations(by_path: Listed) -> None:
    from gpufleet_sandbox.mirror import debs, rpms

    package = by_path["compute/cuda/repos/debian12/x86_64"]["libcuda1"][0]
    assert "Imitation" in debs.control_text(package)
    assert "Imitation" in rpms.NOTE


@pytest.mark.parametrize("code", contents()["dcgm"]["distributions"])
@pytest.mark.parametrize("branch", [550, 580])
def test_the_mirror_has_the_exporter_that_the_catalog_chooses(
    by_path: Listed, code: str, branch: int
) -> None:
    choice = resolve_exporter(
        load_catalog(),
        distribution=load_catalog().distribution(code) or code,
        branch=branch,
        devices=[T4],
        settings=ExporterSettings(),
    )
    cuda = by_path[f"compute/cuda/repos/{code}/x86_64"]
    assert choice.no_packages == ""
    for name in choice.dcgm_packages:
        assert f"1:{choice.dcgm}-1" in [package.version for package in cuda[name]]
    for name in choice.exporter_packages:
        versions = [package.version for package in cuda[name]]
        assert any(version.startswith(choice.version) for version in versions)
