"""Package transactions: versions chosen, words for each package manager, simulations read."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from gpufleet.core.findings import Finding
from gpufleet.driver.job import driver_job
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.facts.model import Kernel, OsRelease, Package, PciDevice
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node, steps
from gpufleet.node.settings import load_settings
from gpufleet.packages.transaction import (
    Family,
    Transaction,
    choose_transaction,
    install_words,
    lock_plugin,
    order,
    parse_available,
    rpm_words,
    to_hold,
    unexpected_changes,
)
from gpufleet.toolkit.plan import plan_toolkit
from gpufleet.toolkit.settings import ToolkitSettings
from tests.unit.hosts import bare_host, plan_for

REPOSITORY = {
    "nvidia-dkms-580-open": ("580.159.03-0ubuntu1", "580.178.04-0ubuntu1", "580.95.05-0ubuntu1"),
    "nvidia-utils-580": ("580.159.03-0ubuntu1", "580.178.04-0ubuntu1"),
    "nvidia-modprobe": ("580.159.03-0ubuntu1", "580.178.04-1ubuntu1", "595.71.05-1ubuntu1"),
    "nvidia-settings": ("580.159.03-0ubuntu1", "580.178.04-0ubuntu1"),
}
NAMES = ("nvidia-dkms-580-open", "nvidia-utils-580", "nvidia-modprobe")


def family(prefix: str = "580.", exact: bool = False, **changes: object) -> Family:
    values: dict[str, object] = {
        "title": "driver",
        "packages": NAMES,
        "prefix": prefix,
        "exact": exact,
        "installed": (),
    }
    return Family(**(values | changes))  # type: ignore[arg-type]


def chosen(wanted: Family) -> Transaction:
    result = choose_transaction(wanted, REPOSITORY)
    assert isinstance(result, Transaction), result
    return result


def test_the_newest_version_that_every_package_has() -> None:
    plan = chosen(family())
    assert plan.version == "580.178.04"
    assert dict(plan.install)["nvidia-modprobe"] == "580.178.04-1ubuntu1"


def test_an_exact_version_is_taken_exactly() -> None:
    assert chosen(family("580.159.03", exact=True)).version == "580.159.03"


def test_a_version_that_only_some_packages_have_is_refused_with_what_there_is() -> None:
    result = choose_transaction(family("580.95.05", exact=True), REPOSITORY)
    assert isinstance(result, Finding)
    assert result.code == "GF313"
    assert "nvidia-utils-580" in result.message
    assert "580.178.04, 580.159.03" in result.message


@pytest.mark.parametrize(
    ("data", "named"),
    [({"driver_branch": "590"}, "driver 590;"), ({"driver_version": "580.1.1"}, "driver 580.1.1;")],
)
def test_a_version_that_is_not_there_is_named_once(data: dict[str, str], named: str) -> None:
    facts = bare_host()
    settings, _ = load_settings(data)
    assert settings
    asked = driver_job(settings.of(DRIVER), facts, plan_for(facts, **data), 300).family
    there = dict.fromkeys(asked.packages, ("595.71.05-1ubuntu1",))
    result = choose_transaction(asked, there)
    assert isinstance(result, Finding)
    assert f"for the {named}" in result.message
    assert "Ask for one of these" not in result.remedy


@pytest.mark.parametrize(
    ("data", "version"),
    [
        ({"driver_branch": "590"}, "the newest of branch 590"),
        ({"driver_version": "580.159.03"}, "580.159.03"),
    ],
)
def test_a_plan_says_that_no_repository_was_asked(data: dict[str, str], version: str) -> None:
    settings, _ = load_settings(data)
    assert settings
    facts = bare_host()
    reported = steps(plan_node(settings, facts, load_catalog(), facts.clock))
    (driver,) = [step for step in reported if "install the driver" in step]
    (toolkit,) = [step for step in reported if "install the toolkit" in step]
    assert f"{version} (the repository is asked in the run)" in driver
    assert ("newest known to the catalog is 590." in driver) is ("driver_branch" in data)
    assert "(the repository is asked in the run)" in toolkit


def test_what_is_asked_for_does_not_change_on_the_way() -> None:
    """A step passes on its result as a separate value."""
    facts = bare_host()
    settings, _ = load_settings({})
    assert settings
    job = driver_job(settings.of(DRIVER), facts, plan_for(facts), 300)
    with pytest.raises(FrozenInstanceError):
        job.reports = False  # type: ignore[misc]
    assert not hasattr(job, "transaction")


def test_an_exact_version_is_not_a_prefix() -> None:
    assert isinstance(choose_transaction(family("580.1", exact=True), REPOSITORY), Finding)


def test_old_packages_leave_and_useful_ones_move_along() -> None:
    plan = chosen(family(installed=("nvidia-dkms-550-open", "nvidia-settings", "nvidia-utils-580")))
    assert plan.remove == ("nvidia-dkms-550-open",)
    assert ("nvidia-settings", "580.178.04-0ubuntu1") in plan.install


def test_a_conflicting_package_leaves_even_at_the_right_version() -> None:
    plan = chosen(family(installed=("nvidia-settings",), conflicting=("nvidia-settings",)))
    assert plan.remove == ("nvidia-settings",)


@pytest.mark.parametrize(
    ("older", "newer"),
    [("580.95.05", "580.159.03"), ("550.9", "550.54.15"), ("9.0", "10.0"),
     ("580.159.03-0ubuntu1", "580.159.03-1ubuntu1"), ("580.1", f"580.{'9' * 5000}")],
)  # fmt: skip
def test_versions_are_ordered_as_numbers(older: str, newer: str) -> None:
    assert order(older) < order(newer)


def test_apt_does_all_in_one_transaction() -> None:
    plan = Transaction("580.1", (("a", "580.1-1"),), ("gcc",), ("old",))
    words = install_words("apt", plan, 60)
    assert words[-4:] == ["install", "a=580.1-1", "gcc", "old-"]
    assert "DPkg::Lock::Timeout=60" in words


def test_rpm_gets_removals_and_versions_in_one_transaction_after_its_prerequisites() -> None:
    plan = Transaction("550.1", (("kmod-nvidia", "3:550.1-1.el7"),), ("dkms",), ("kmod-open",))
    assert rpm_words(plan) == ["-kmod-open", "kmod-nvidia=3:550.1-1.el7"]
    words = install_words("yum", plan, 60)
    assert words[0] == "yum"
    assert words[-2:] == ["install", "dkms"]


def test_a_simulation_that_does_more_than_planned_is_found() -> None:
    lines = [
        "Inst nvidia-utils-580 (580.178.04-0ubuntu1 NVIDIA [amd64])",
        "Remv nvidia-utils-550 [550.163.01-0ubuntu1]",
        "Remv slurm-wlm [22.05]",
        "Inst linux-image-6.8.0-50-generic (6.8 Ubuntu [amd64])",
        "Conf nvidia-utils-580 (580.178.04-0ubuntu1 NVIDIA [amd64])",
    ]
    plan = Transaction("580.178.04", (), (), ("nvidia-utils-550",))
    assert unexpected_changes(lines, plan, ["nvidia-.*"]) == [
        "slurm-wlm",
        "linux-image-6.8.0-50-generic (a new kernel)",
    ]


def test_available_versions_are_grouped_by_name() -> None:
    assert parse_available(["a 1.0-1", "a 2.0-1", "b 3.0", "", "noise"]) == {
        "a": ("1.0-1", "2.0-1"),
        "b": ("3.0",),
    }


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
    catalog, plugin = load_catalog(), "yum-plugin-versionlock"
    el7 = bare_host(os=OsRelease("centos", "7"), package_manager="yum")
    assert lock_plugin(el7, catalog, hold=True) == (plugin,)
    assert lock_plugin(el7, catalog, hold=False) == ()
    assert lock_plugin(bare_host(), catalog, hold=True) == ()
    there = replace(el7, packages={plugin: Package(plugin, "1.1.31-54.el7_8", "noarch")})
    assert lock_plugin(there, catalog, hold=True) == ()


def test_each_role_installs_the_version_lock_on_its_own() -> None:
    plugin = "yum-plugin-versionlock"
    el7 = bare_host(
        os=OsRelease("centos", "7"),
        package_manager="yum",
        kernel=Kernel("3.10.0-1160.el7.x86_64", "x86_64", headers=True),
        pci=(PciDevice("0000:3b:00.0", 0x1EB8, 0x030200),),
    )
    assert plugin in plan_for(el7).prerequisites
    assert plugin not in plan_for(el7, driver_hold=False).prerequisites
    toolkit = plan_toolkit(ToolkitSettings(), el7, load_catalog())
    assert toolkit.prerequisites == (plugin,)
