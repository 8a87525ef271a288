"""Package transactions: versions, command lines of each package manager, parsed simulations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.core.findings import Finding
from gpufleet.core.versions import version_order
from gpufleet.facts.model import Kernel, OsRelease, Package, PciDevice
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node, plan_steps
from gpufleet.node.settings import load_node_settings
from gpufleet.packages.holds import lock_plugin, to_hold
from gpufleet.packages.transaction import (
    PackageTransaction,
    install_words,
    resolve_transaction,
    rpm_words,
)
from gpufleet.toolkit.plan import plan_toolkit
from gpufleet.toolkit.settings import ToolkitSettings
from tests.unit.hosts import bare_host, plan_for, resolved_transaction

REPOSITORY = {
    "nvidia-dkms-580-open": ("580.159.03-0ubuntu1", "580.178.04-0ubuntu1", "580.95.05-0ubuntu1"),
    "nvidia-utils-580": ("580.159.03-0ubuntu1", "580.178.04-0ubuntu1"),
    "nvidia-modprobe": ("580.159.03-0ubuntu1", "580.178.04-1ubuntu1", "595.71.05-1ubuntu1"),
    "nvidia-settings": ("580.159.03-0ubuntu1", "580.178.04-0ubuntu1"),
}
NAMES = ("nvidia-dkms-580-open", "nvidia-utils-580", "nvidia-modprobe")


def asked(version: str | None = None, **changes: Any) -> PackageTransaction:
    return resolved_transaction(packages=NAMES, version=version, branch="580", **changes)


def chosen(wanted: PackageTransaction) -> PackageTransaction:
    result = resolve_transaction(wanted, REPOSITORY)
    assert isinstance(result, PackageTransaction), result
    return result


def test_the_newest_version_that_every_package_has() -> None:
    plan = chosen(asked())
    assert plan.version == "580.178.04"
    assert dict(plan.install)["nvidia-modprobe"] == "580.178.04-1ubuntu1"


def test_an_exact_version_is_taken_exactly() -> None:
    assert chosen(asked("580.159.03")).version == "580.159.03"


def test_a_version_that_only_some_packages_have_is_refused_with_what_there_is() -> None:
    result = resolve_transaction(asked("580.95.05"), REPOSITORY)
    assert isinstance(result, Finding)
    assert result.code == "GF313"
    assert "nvidia-utils-580" in result.message
    assert "580.178.04, 580.159.03" in result.message


@pytest.mark.parametrize(
    ("data", "named"),
    [({"driver_branch": "590"}, "driver 590;"), ({"driver_version": "580.1.1"}, "driver 580.1.1;")],
)
def test_a_version_that_is_not_there_is_named_once(data: dict[str, str], named: str) -> None:
    wanted = plan_for(bare_host(), **data).transaction
    result = resolve_transaction(wanted, dict.fromkeys(wanted.packages, ("595.71.05-1ubuntu1",)))
    assert isinstance(result, Finding)
    assert f"for the {named}" in result.message
    assert "Ask for one of these" not in result.remedy


@pytest.mark.parametrize(
    ("data", "version"),
    [
        ({"driver_branch": "590"}, " or a newer 590 of the repository"),
        ({"driver_version": "580.159.03"}, "580.159.03"),
    ],
)
def test_a_plan_says_that_no_repository_was_asked(data: dict[str, str], version: str) -> None:
    settings, _ = load_node_settings(data)
    assert settings
    facts = bare_host()
    reported = plan_steps(plan_node(settings, facts, load_catalog(), facts.clock))
    (driver,) = [step for step in reported if "install the driver" in step]
    (toolkit,) = [step for step in reported if "install the toolkit" in step]
    assert version in driver
    assert driver.endswith(" (the repository is asked in the run)")
    assert "(the repository is asked in the run)" in toolkit


def test_an_exact_version_is_not_a_prefix() -> None:
    assert isinstance(resolve_transaction(asked("580.1"), REPOSITORY), Finding)


def test_old_packages_leave_and_useful_ones_move_along() -> None:
    plan = chosen(asked(installed=("nvidia-dkms-550-open", "nvidia-settings", "nvidia-utils-580")))
    assert plan.remove == ("nvidia-dkms-550-open",)
    assert ("nvidia-settings", "580.178.04-0ubuntu1") in plan.install


def test_a_conflicting_package_leaves_even_at_the_right_version() -> None:
    plan = chosen(asked(installed=("nvidia-settings",), conflicting=("nvidia-settings",)))
    assert plan.remove == ("nvidia-settings",)


@pytest.mark.parametrize(
    ("older", "newer"),
    [("580.95.05", "580.159.03"), ("550.9", "550.54.15"), ("9.0", "10.0"),
     ("580.159.03-0ubuntu1", "580.159.03-1ubuntu1"), ("580.1", f"580.{'9' * 5000}")],
)  # fmt: skip
def test_versions_are_ordered_as_numbers(older: str, newer: str) -> None:
    assert version_order(older) < version_order(newer)


def test_apt_does_all_in_one_transaction() -> None:
    plan = resolved_transaction(
        install=(("a", "580.1-1"),), prerequisites=("gcc",), remove=("old",), lock_timeout=60
    )
    words = install_words(plan)
    assert words[-4:] == ["install", "a=580.1-1", "gcc", "old-"]
    assert "DPkg::Lock::Timeout=60" in words


def test_rpm_gets_removals_and_versions_in_one_transaction_after_its_prerequisites() -> None:
    plan = resolved_transaction(
        install=(("kmod-nvidia", "3:550.1-1.el7"),),
        prerequisites=("dkms",),
        remove=("kmod-open",),
        facts=bare_host(package_manager="yum"),
    )
    assert rpm_words(plan) == ["-kmod-open", "kmod-nvidia=3:550.1-1.el7"]
    words = install_words(plan)
    assert words[0] == "yum"
    assert words[-2:] == ["install", "dkms"]


@pytest.mark.parametrize(
    "lock",
    [
        "kmod-nvidia-latest-dkms-3:550.163.01-1.el7.*",  # dnf
        "3:kmod-nvidia-latest-dkms-550.163.01-1.el7.*",  # yum 3
        "kmod-nvidia-latest-dkms-550.163.01-1.el7",
    ],
)
def test_a_lock_of_yum_and_dnf_holds_a_package_at_its_version(lock: str) -> None:
    name = "kmod-nvidia-latest-dkms"
    there = {name: Package(name, "3:550.163.01-1.el7", "x86_64")}
    facts = bare_host(package_manager="yum", packages=there, holds=frozenset({lock}))
    assert to_hold([name], facts, moves=False) == ()
    assert to_hold([name], facts, moves=True) == (name,)
    other = {name: Package(name, "3:550.144.03-1.el7", "x86_64")}
    assert to_hold([name], replace(facts, packages=other), moves=False) == (name,)


def test_the_version_lock_comes_where_it_is_missing_and_a_lock_is_wanted() -> None:
    plugin = "yum-plugin-versionlock"
    el7 = bare_host(os=OsRelease("centos", "7"), package_manager="yum")
    assert lock_plugin(el7, hold=True) == (plugin,)
    assert lock_plugin(el7, hold=False) == ()
    assert lock_plugin(bare_host(), hold=True) == ()
    there = replace(el7, packages={plugin: Package(plugin, "1.1.31-54.el7_8", "noarch")})
    assert lock_plugin(there, hold=True) == ()


def test_each_role_installs_the_version_lock_on_its_own() -> None:
    plugin = "yum-plugin-versionlock"
    el7 = bare_host(
        os=OsRelease("centos", "7"),
        package_manager="yum",
        kernel=Kernel("3.10.0-1160.el7.x86_64", "x86_64", headers=True),
        pci=(PciDevice("0000:3b:00.0", 0x1EB8, 0x030200),),
    )
    assert plugin in plan_for(el7).transaction.prerequisites
    assert plugin not in plan_for(el7, driver_hold=False).transaction.prerequisites
    toolkit = plan_toolkit(ToolkitSettings(), el7, load_catalog())
    assert toolkit.transaction.prerequisites == (plugin,)
