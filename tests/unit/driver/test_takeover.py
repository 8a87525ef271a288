"""A driver of another source is taken over at a version that the configured source has."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.core.findings import Finding
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.driver.role import conclude_driver
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.model import GpuProcess, Kernel, ModuleOnDisk, NodeFacts, OsRelease, Package
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node, plan_steps
from gpufleet.node.settings import load_node_settings
from gpufleet.packages.transaction import PackageTransaction, resolve_transaction
from tests.unit.hosts import bare_host, plan_for, record_of

NOBLE = OsRelease("ubuntu", "24.04", ("debian",), "noble", "Ubuntu 24.04.1 LTS")
OPEN = (
    "nvidia-driver-580-open", "nvidia-dkms-580-open", "nvidia-kernel-source-580-open",
    "nvidia-kernel-common-580", "libnvidia-compute-580", "libnvidia-cfg1-580",
    "libnvidia-decode-580", "nvidia-compute-utils-580", "nvidia-utils-580",
)  # fmt: skip
SERVER = tuple(name.replace("580", "580-server") for name in OPEN)
REPOSITORY = ("580.159.03", "580.178.04")  # versions of the branch in NVIDIA's repository
UBUNTU = "0ubuntu0.24.04.1"


def host(names: tuple[str, ...], version: str, **changes: Any) -> NodeFacts:
    """A working host whose driver is from these packages."""
    plain = version.partition("-")[0]
    values: dict[str, Any] = {
        "os": NOBLE,
        "kernel": Kernel("6.8.0-45-generic", "x86_64", headers=True),
        "packages": {name: Package(name, version, "amd64") for name in names},
        "modules": {"nvidia": plain, "nvidia_uvm": plain},
        "module_on_disk": ModuleOnDisk(plain, "Dual MIT/GPL"),
        "library": plain,
    }
    return bare_host(**values | changes)


def resolved(facts: NodeFacts, *versions: str, **data: Any) -> PackageTransaction | Finding:
    """The transaction of the plan with a repository that has these versions of all packages."""
    asked = plan_for(facts, **data).transaction
    there = dict.fromkeys(asked.packages, tuple(f"{v}-0ubuntu1" for v in versions))
    return resolve_transaction(asked, there)


def test_the_result_of_a_run_says_what_it_replaced_and_not_what_it_put_right() -> None:
    facts = host(OPEN, f"580.82.09-{UBUNTU}")
    solved = conclude_driver(DriverSettings(), facts, plan_for(facts)).solved
    assert "GF307" in solved
    assert "GF512" not in solved


@pytest.mark.parametrize(
    ("names", "version"),
    [
        (OPEN, f"580.82.09-{UBUNTU}"),
        (SERVER, f"580.82.09-{UBUNTU}"),
        (OPEN, "580.82.09-0ubuntu0~gpu24.04.1"),
        (OPEN, "580.82.09-0lambda0.24.04.1"),
        (OPEN, "580.82.09-1pop1~1757000000~24.04~abcdef0"),
    ],
)
def test_it_is_replaced_by_a_version_that_is_there(names: tuple[str, ...], version: str) -> None:
    facts = host(names, version)
    plan = plan_for(facts)
    assert (plan.action, plan.before, plan.target) == ("replace", "580.82.09", None)
    assert "GF512" in {finding.code for finding in plan.findings}
    assert "from another source than NVIDIA's repository" in plan.reasons[1]
    chosen = resolved(facts, *REPOSITORY)
    assert isinstance(chosen, PackageTransaction), chosen
    assert chosen.version == "580.178.04"


def test_the_plan_shows_what_the_run_does() -> None:
    facts = host(OPEN, f"580.82.09-{UBUNTU}")
    settings = load_node_settings({"driver_allow_change": True})[0]
    assert settings
    reported = plan_steps(plan_node(settings, facts, load_catalog(), facts.clock))
    (driver,) = [step for step in reported if "the driver:" in step]
    assert "replace the driver: 580.178.04 or a newer 580 of the repository" in driver
    described = DRIVER.describe(plan_for(facts))
    assert (described["before"], described["target"]) == ("580.82.09", "580.178.04")
    assert f"580.82.09-{UBUNTU}" in " ".join(described["reasons"])


def test_ubuntu_s_transitional_packages_of_the_same_version_are_not_installed() -> None:
    """Ubuntu's 570 packages are empty and sort above NVIDIA's of the same version."""
    facts = host((), "570.211.01-0ubuntu1", modules={}, module_on_disk=None, library=None)
    asked = plan_for(facts, driver_branch="570").transaction
    both = ("570.211.01-0ubuntu1", "570.211.01-0ubuntu1.24.04.1")
    found = resolve_transaction(asked, dict.fromkeys(asked.packages, both))
    assert isinstance(found, PackageTransaction)
    assert {version for _, version in found.install} == {"570.211.01-0ubuntu1"}


def test_it_is_no_downgrade_that_nobody_asked_for() -> None:
    facts = host(OPEN, f"580.178.04-{UBUNTU}")
    found = resolved(facts, "580.159.03")
    assert isinstance(found, Finding)
    assert found.code == "GF313"
    assert "580.178.04 or newer" in found.message
    asked = resolved(facts, "580.159.03", driver_version="580.159.03")
    assert isinstance(asked, PackageTransaction)


def test_an_exact_version_is_what_is_installed() -> None:
    plan = plan_for(host(OPEN, f"580.82.09-{UBUNTU}"), driver_version="580.159.03")
    assert (plan.action, plan.target) == ("upgrade", "580.159.03")


def test_it_waits_for_work_on_the_gpus() -> None:
    work = GpuProcess(700, "python3", ("/dev/nvidia0",))
    plan = plan_for(host(OPEN, f"580.82.09-{UBUNTU}", gpu_processes=(work,)))
    assert "GF530" in {finding.code for finding in plan.findings if finding.blocks}


@pytest.mark.parametrize("revision", ["0ubuntu1", "1ubuntu1", "1"])
def test_nvidia_s_own_packages_are_completed_at_their_version(revision: str) -> None:
    facts = host(OPEN, f"580.159.03-{revision}")
    plan = plan_for(facts)
    assert (plan.action, plan.target) == ("repair", "580.159.03")
    assert "GF512" not in {finding.code for finding in plan.findings}
    chosen = resolved(facts, *REPOSITORY)
    assert isinstance(chosen, PackageTransaction)
    assert chosen.version == "580.159.03"


def test_what_gpufleet_installed_from_a_mirror_keeps_its_version() -> None:
    """A mirror can have packages with another revision, here 1corp0.3."""
    names = plan_for(bare_host(os=NOBLE)).packages
    record = record_of(driver={"packages": dict.fromkeys(names, "580.159.03")})
    facts = host(names[1:], "580.159.03-1corp0.3", provenance=record)
    plan = plan_for(facts)
    assert (plan.action, plan.target) == ("repair", "580.159.03")


def test_a_complete_driver_of_another_source_that_works_is_left_alone() -> None:
    names = plan_for(bare_host(os=NOBLE)).packages
    plan = plan_for(host(names, f"580.82.09-{UBUNTU}"))
    assert (plan.action, plan.target) == ("none", "580.82.09")


def test_debian_s_stable_update_is_of_debian() -> None:
    bookworm = OsRelease("debian", "12", (), "bookworm", "Debian GNU/Linux 12 (bookworm)")
    names = ("libcuda1", "libnvidia-ml1", "nvidia-smi", "nvidia-kernel-dkms")
    facts = host(names, "535.309.01-0+deb12u1", os=bookworm)
    plan = plan_for(facts, driver_branch="535")
    assert (plan.action, plan.target) == ("replace", None)
