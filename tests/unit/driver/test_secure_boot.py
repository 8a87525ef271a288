"""Under Secure Boot a driver that works is not replaced by one that the kernel would refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.driver.preflight import inspect_driver
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.facts.model import DkmsModule, ModuleOnDisk, NodeFacts, OsRelease, Package
from gpufleet.node.settings import load_node_settings
from tests.unit.hosts import KERNEL, bare_host, converged_host, plan_for

VERSION, OTHER = "580.159.03", "580.178.04"
BUILT = ModuleOnDisk(
    VERSION, "Dual MIT/GPL", f"/lib/modules/{KERNEL}/updates/dkms/nvidia.ko", "gpu-01 MOK"
)
DISTRIBUTIONS = replace(
    BUILT,
    path=f"/lib/modules/{KERNEL}/kernel/nvidia-580/nvidia.ko",
    signer="Canonical Kmod Signing",
)
DKMS = DkmsModule("nvidia", VERSION, KERNEL, "installed")


def refused(facts: NodeFacts, **data: Any) -> bool:
    """Whether GF522 stops the host when Secure Boot is on."""
    facts = replace(facts, kernel=replace(facts.kernel, secure_boot=True))
    settings, _ = load_node_settings(data)
    assert settings
    found = inspect_driver(settings.of(DRIVER), facts, plan_for(facts, **data))
    return "GF522" in {finding.code for finding in found if finding.blocks}


@pytest.mark.parametrize(
    ("module", "dkms", "expected"),
    [
        (BUILT, (DKMS,), False),
        (replace(BUILT, path=f"/lib/modules/{KERNEL}/extra/nvidia.ko.xz"), (DKMS,), False),
        (DISTRIBUTIONS, (), True),
        (DISTRIBUTIONS, (DKMS,), True),  # DKMS built one, but the kernel loads another
        (replace(BUILT, signer=""), (DKMS,), True),
        (replace(BUILT, version=OTHER), (DKMS,), True),
        (BUILT, (), True),
        (BUILT, (replace(DKMS, kernel="5.15.0-1-generic"),), True),
        (BUILT, (replace(DKMS, state="built"),), True),
        (BUILT, (replace(DKMS, version=OTHER),), True),
        (None, (DKMS,), True),
    ],
)
def test_a_driver_moves_only_where_dkms_signs_with_an_enrolled_key(
    module: ModuleOnDisk | None, dkms: tuple[DkmsModule, ...], expected: bool
) -> None:
    facts = converged_host(VERSION, module_on_disk=module, dkms=dkms)
    assert refused(facts, driver_version=OTHER) is expected
    assert refused(facts, driver_branch="550") is expected
    assert refused(facts, driver_version=OTHER, driver_mok_enrolled=True) is False


@pytest.mark.parametrize(
    ("system", "manager", "offered"),
    [
        (OsRelease("ubuntu", "22.04", ("debian",)), "apt", True),
        (OsRelease("debian", "12"), "apt", False),
        (OsRelease("almalinux", "9.6", ("rhel", "centos", "fedora")), "dnf", False),
    ],
)
def test_signed_modules_are_advised_only_where_the_distribution_has_them(
    system: OsRelease, manager: Any, offered: bool
) -> None:
    facts = bare_host(os=system, package_manager=manager)
    facts = replace(facts, kernel=replace(facts.kernel, secure_boot=True))
    settings, _ = load_node_settings({})
    assert settings
    found = inspect_driver(settings.of(DRIVER), facts, plan_for(facts))
    (refusal,) = [finding for finding in found if finding.code == "GF522"]
    assert ("precompiled" in refusal.remedy) is offered


@pytest.mark.parametrize("module", [BUILT, DISTRIBUTIONS])
def test_a_signed_driver_that_stays_is_fine(module: ModuleOnDisk) -> None:
    assert refused(converged_host(VERSION, module_on_disk=module)) is False


def test_a_built_driver_that_the_kernel_did_not_take_stays_refused() -> None:
    facts = converged_host(VERSION, module_on_disk=BUILT, dkms=(DKMS,), modules={})
    assert refused(facts) is True


def test_a_module_that_came_built_is_loaded_without_a_key_of_dkms() -> None:
    """A kmod of the distribution or of NVIDIA, which was not loaded yet."""
    rocky = OsRelease("rocky", "9.6", ("rhel", "centos", "fedora"))
    bare = bare_host(os=rocky, package_manager="dnf")
    names = [n for n in plan_for(bare, driver_version=VERSION).packages if not n.endswith("-dkms")]
    prebuilt = f"kmod-nvidia-open-{VERSION}-5.14.0-570.58.1"
    packages = {name: Package(name, f"{VERSION}-1.el9", "x86_64") for name in (*names, prebuilt)}
    facts = replace(bare, packages=packages, library=VERSION, module_on_disk=BUILT)
    plan = plan_for(facts)
    assert (plan.action, plan.load) == ("none", True)
    assert refused(facts) is False


def test_a_precompiled_driver_is_signed_by_the_distribution() -> None:
    facts = converged_host(VERSION, module_on_disk=DISTRIBUTIONS)
    data = {"driver_source": "distro", "driver_build": "precompiled", "driver_branch": "570"}
    assert refused(facts, **data) is False
