"""A user's version locks of yum and dnf count as holds, however the list spells them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.driver.health import described_driver
from gpufleet.facts.model import Kernel, ModuleOnDisk, NodeFacts, OsRelease, Package
from gpufleet.node.catalog import load_catalog
from tests.unit.hosts import bare_host, plan_for, record_of

THERE, NEWER = "580.159.03", "580.178.04"
ROCKY = OsRelease("rocky", "9.4", ("rhel",), "", "Rocky Linux 9.4")
BLOCKER = "GF303"


def rocky(*locks: str) -> NodeFacts:
    """A host whose driver nobody recorded."""
    kernel = Kernel("5.14.0-427.13.1.el9_4.x86_64", "x86_64", headers=True, secure_boot=False)
    bare = bare_host(os=ROCKY, package_manager="dnf", kernel=kernel)
    names = plan_for(bare, driver_version=THERE).packages
    packages = {name: Package(name, f"3:{THERE}-1.el9", "x86_64") for name in names}
    return replace(
        bare,
        packages=packages,
        holds=frozenset(locks),
        modules={"nvidia": THERE, "nvidia_uvm": THERE},
        module_on_disk=ModuleOnDisk(THERE, "Dual MIT/GPL"),
        library=THERE,
    )


@pytest.mark.parametrize(
    ("lock", "held"),
    [
        ("nvidia-driver-cuda-3:580.159.03-1.el9.*", True),
        ("3:nvidia-driver-cuda-580.159.03-1.el9.*", True),
        ("nvidia-driver-cuda-3:580.159.03-1.el9.x86_64", True),
        ("nvidia-driver-cuda-580.159.03-1.el9", True),
        ("nvidia-driver-cuda-3:580.*", True),
        ("*nvidia*", True),
        ("nvidia-driver-cuda-3:550.163.01-1.el9.*", False),
        ("!nvidia-driver-cuda-3:580.178.04-1.el9.*", False),
        ("kernel-0:5.14.0-427.13.1.el9_4.*", False),
    ],
)
def test_a_users_lock_blocks_a_move(lock: str, held: bool) -> None:
    facts = rocky(lock)
    found = plan_for(facts, driver_version=NEWER).findings
    assert any(finding.code == BLOCKER for finding in found) is held


def test_locks_of_gpufleet_do_not_block() -> None:
    facts = rocky("nvidia-driver-cuda-3:580.159.03-1.el9.*")
    ours = record_of(driver={"packages": dict.fromkeys(facts.packages, THERE)})
    found = plan_for(replace(facts, provenance=ours), driver_version=NEWER).findings
    assert BLOCKER not in {finding.code for finding in found}


def test_doctors_report_shows_locked_packages_as_held() -> None:
    facts = rocky("nvidia-driver-cuda-3:580.159.03-1.el9.*")
    shown = described_driver(facts, load_catalog())["packages"]
    assert [each["name"] for each in shown if each["held"]] == ["nvidia-driver-cuda"]
