"""A plain run keeps an installed driver that works, repairs one that does not, and says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.core.findings import Finding
from gpufleet.driver.files import PREFERENCES_FILE
from gpufleet.driver.plan import DriverPlan
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.driver.role import conclude_driver
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.model import GpuProcess, ModuleOnDisk, NodeFacts, OsRelease, Package
from gpufleet.facts.record import EMPTY_RECORD
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, plan_node
from gpufleet.node.settings import load_node_settings
from tests.unit.hosts import bare_host, converged_host, plan_for, record_of

THERE = "580.159.03"


def planned(facts: NodeFacts, **data: Any) -> NodePlan:
    settings, problems = load_node_settings({"toolkit_enabled": False, **data})
    assert settings, problems
    return plan_node(settings, facts, load_catalog(), facts.clock)


def driver(facts: NodeFacts, **data: Any) -> DriverPlan:
    plan = planned(facts, **data).of(DRIVER)
    assert plan
    return plan


def kept(facts: NodeFacts, **data: Any) -> list[Finding]:
    return [each for each in planned(facts, **data).all_findings if each.code == "GF149"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"driver_version": "580.178.04"}, "INVENTORY`"),
        ({"driver_version": "580.95.05"}, "INVENTORY --allow-downgrade`"),
        ({"driver_branch": "595"}, "INVENTORY`"),
        ({"driver_branch": "550"}, "INVENTORY --allow-downgrade`"),
        ({"driver_modules": "proprietary"}, "INVENTORY --branch 580`"),
    ],
)
def test_a_driver_that_works_stays_as_it_is(
    converged: NodeFacts, data: dict[str, str], words: str
) -> None:
    plan = driver(converged, **data)
    assert (plan.action, plan.target, plan.choice.modules) == ("none", THERE, "open")
    assert not plan.load
    (finding,) = kept(converged, **data)
    assert finding.severity.value == "warning"
    assert f"`gpufleet upgrade {words}" in finding.remedy
    assert "--allow-driver-change" in finding.remedy
    assert not planned(converged, **data).blockers
    moved = driver(converged, **data, driver_allow_change=True)
    assert moved.action in ("upgrade", "downgrade", "replace")
    assert not kept(converged, **data, driver_allow_change=True)


def test_nothing_is_said_where_nothing_else_is_wanted(converged: NodeFacts) -> None:
    for data in ({}, {"driver_version": THERE}, {"driver_branch": "580"}):
        assert not kept(converged, **data)
    assert not kept(converged_host("595.58.03"))  # newer than the default


def test_a_kept_version_that_the_catalog_lacks_is_no_typing_error() -> None:
    """No setting names it: there is nothing to correct."""
    unknown = converged_host("580.159.99")
    found = {each.code for each in planned(unknown, driver_branch="595").all_findings}
    assert "GF149" in found
    assert "GF111" not in found
    named = planned(unknown, driver_version="580.178.99").all_findings
    assert "GF149" in {each.code for each in named}


def test_an_older_branch_than_the_default_is_only_noted() -> None:
    (finding,) = kept(converged_host("550.163.01"))
    assert finding.severity.value == "info"
    assert "gpufleet upgrade INVENTORY --branch 580`" in finding.remedy


def test_work_on_the_gpus_is_no_obstacle_to_what_stays(converged: NodeFacts) -> None:
    busy = replace(converged, gpu_processes=(GpuProcess(4711, "python3"),))
    assert not planned(busy, driver_version="580.178.04").blockers


@pytest.mark.parametrize("data", [{"driver_version": "580.178.04"}, {"driver_branch": "595"}])
def test_a_driver_that_does_not_work_is_repaired_at_its_version(
    converged: NodeFacts, data: dict[str, str]
) -> None:
    name = "nvidia-utils-580"
    half = replace(converged.packages[name], state="half-configured")
    rest = {key: value for key, value in converged.packages.items() if key != name}
    for broken in (
        replace(converged, module_on_disk=None, modules={}),  # DKMS failed
        replace(converged, packages={**rest, name: half}),
        replace(converged, packages=rest),
    ):
        plan = driver(broken, **data)
        assert (plan.action, plan.target) == ("repair", THERE)
        (finding,) = kept(broken, **data)
        assert "repaired at that version" in finding.message


def test_an_interrupted_change_is_completed(converged: NodeFacts) -> None:
    name = "nvidia-utils-580"
    new = Package(name, "580.178.04-0ubuntu1", "amd64", "unpacked")
    mixed = replace(converged, packages={**converged.packages, name: new}, module_on_disk=None)
    assert driver(mixed, driver_version="580.178.04").target == "580.178.04"
    first = plan_for(converged, driver_branch="550").packages[0]
    new = Package(first, "550.163.01-0ubuntu1", "amd64")
    mixed = replace(converged, packages={**converged.packages, first: new}, module_on_disk=None)
    assert driver(mixed, driver_branch="550", driver_allow_change=False).choice.branch == "550"


def test_a_driver_of_unknown_packages_is_left_alone() -> None:
    """A complete, loaded driver of the distribution that gpufleet did not install."""
    names = ("nvidia-utils-535-server", "nvidia-dkms-535-server", "libnvidia-compute-535-server")
    version = "535.261.03"
    packages = {name: Package(name, f"{version}-0ubuntu0.22.04.1", "amd64") for name in names}
    facts = replace(converged_host(version), packages=packages, provenance=EMPTY_RECORD)
    plan = planned(facts, driver_branch="580")
    assert plan.of(DRIVER) is None
    (finding,) = kept(facts, driver_branch="580")
    assert "driver_enabled = False" in finding.remedy
    broken = replace(facts, module_on_disk=None, modules={})
    assert driver(broken, driver_branch="580").action == "replace"
    assert driver(facts, driver_branch="580", driver_allow_change=True).action == "replace"


def test_transitional_packages_of_a_former_branch_do_not_give_the_version() -> None:
    """Ubuntu's 550-server packages became empty ones that lead to 570-server."""
    names = ("libnvidia-cfg1-{}-server", "libnvidia-compute-{}-server", "nvidia-utils-{}-server",
             "nvidia-dkms-{}-server")  # fmt: skip
    packages = {
        name.format(branch): Package(name.format(branch), f"{version}-0ubuntu0.22.04.1", "amd64")
        for branch, version in (("550", "550.163.01"), ("570", "570.211.01"))
        for name in names
    }
    version = "570.211.01"
    there = bare_host(
        packages=packages, modules={"nvidia": version, "nvidia_uvm": version}, library=version,
        module_on_disk=ModuleOnDisk(version, "NVIDIA"),
    )  # fmt: skip
    assert planned(there).of(DRIVER) is None
    (finding,) = kept(there)
    assert version in finding.message


@pytest.mark.parametrize("data", [{}, {"driver_branch": "580"}, {"driver_branch": "590"}])
def test_a_module_that_came_built_stays(data: dict[str, str]) -> None:
    """`dnf module install nvidia-driver:580` installs a kmod for the kernel, and no DKMS."""
    version = "580.105.08"
    rocky = OsRelease("rocky", "9.6", ("rhel", "centos", "fedora"))
    bare = bare_host(os=rocky, package_manager="dnf")
    names = [n for n in plan_for(bare, driver_version=version).packages if not n.endswith("-dkms")]
    packages = {name: Package(name, f"{version}-1.el9", "x86_64") for name in names}
    prebuilt = f"kmod-nvidia-open-{version}-5.14.0-570.58.1"
    packages[prebuilt] = Package(prebuilt, f"{version}-3.el9", "x86_64")
    there = replace(
        bare, packages=packages, modules={"nvidia": version, "nvidia_uvm": version},
        library=version, module_on_disk=ModuleOnDisk(version, "Dual MIT/GPL"),
    )  # fmt: skip
    plan = driver(there, **data)
    assert (plan.action, plan.load) == ("none", False)
    assert bool(kept(there, **data)) is (data.get("driver_branch") == "590")
    entry = conclude_driver(DriverSettings(), there, plan).entry
    assert entry.build == "precompiled"
    recorded = replace(there, provenance=record_of(driver=entry.model_dump()))
    assert driver(recorded, **data).action == "none"


@pytest.mark.parametrize("build", ["dkms", "precompiled"])
def test_ubuntus_precompiled_modules_stay(build: str) -> None:
    """`ubuntu-drivers install --gpgpu` installs modules from the archive, and no DKMS."""
    kernel, hwe = "6.8.0-64-generic", "generic-hwe-22.04"
    image = Package(f"linux-image-{hwe}", "6.8.0-64.67~22.04.1", "amd64")
    bare = bare_host(packages={image.name: image})
    bare = replace(bare, kernel=replace(bare.kernel, release=kernel))
    data = {"driver_source": "distro", "driver_branch": "580"}
    asked = plan_for(bare, driver_build="precompiled", **data)
    stem = "linux-modules-nvidia-580-server-open-"
    assert set(asked.choice.packages.companions) == {f"{stem}{kernel}", f"{stem}{hwe}"}
    userland = dict.fromkeys(asked.packages, f"{THERE}-0ubuntu0.22.04.1")
    modules = dict.fromkeys(asked.choice.packages.companions, "6.8.0-64.67~22.04.1+1")
    there = replace(
        bare, modules={"nvidia": THERE, "nvidia_uvm": THERE}, library=THERE,
        module_on_disk=ModuleOnDisk(THERE, "Dual MIT/GPL"),
        packages={image.name: image} | {
            name: Package(name, version, "amd64") for name, version in (userland | modules).items()
        },
    )  # fmt: skip
    plan = driver(there, driver_build=build, **data)
    assert (plan.action, plan.load, plan.choice.build) == ("none", False, "precompiled")


def test_precompiled_modules_of_newer_kernels_are_left_to_apt() -> None:
    """Their metapackage, which is installed with the driver, requires them."""
    stem = "linux-modules-nvidia-580-server-open-"
    newer, older = f"{stem}5.15.0-130-generic", f"{stem}5.15.0-9-generic"
    former = "linux-modules-nvidia-570-server-5.15.0-130-generic"
    parts = [f"linux-{part}-nvidia-5.15.0-122-generic" for part in ("objects", "signatures")]
    names = (newer, older, former, *parts)
    there = {name: Package(name, "5.15.0-130.140", "amd64") for name in names}
    data = {"driver_source": "distro", "driver_build": "precompiled", "driver_branch": "580"}
    plan = plan_for(bare_host(packages=there), **data)
    assert plan.transaction.installed == (former, older)


def test_a_driver_without_packages_in_the_catalog_gets_no_pin() -> None:
    """apt reads no source while a pin names no package."""
    installed = converged_host("550.163.01")
    data = {"driver_source": "distro", "driver_branch": "550"}  # Ubuntu's archive has none
    plan = driver(installed, **data)
    assert (plan.action, plan.packages) == ("none", ())
    assert PREFERENCES_FILE not in {file.path for file in plan.files}
    assert "GF112" in {finding.code for finding in planned(installed, **data).all_findings}


def test_a_private_version_that_is_installed_is_repaired() -> None:
    facts = replace(converged_host("580.178.04"), module_on_disk=None, modules={})
    packages = {
        name: replace(each, version=each.version.replace("580.178.04", "580.199.99"))
        for name, each in facts.packages.items()
    }
    facts = replace(facts, packages=packages, library="580.199.99")
    plan = planned(facts, driver_version="580.178.04")
    assert not plan.blockers
    assert driver(facts, driver_version="580.178.04").target == "580.199.99"


def test_a_wrong_setting_still_blocks(converged: NodeFacts) -> None:
    assert planned(converged, driver_branch="850").blockers
    assert planned(converged, driver_version="580.17").blockers
