"""A host with the requested versions is not stopped if they can no longer be installed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hosts import bare_host, converged_host, plan_for

from gpufleet.facts.model import Kernel, ModuleOnDisk, NodeFacts, OsRelease, Package
from gpufleet.node.catalog import load_catalog
from gpufleet.toolkit.plan import ToolkitPlan, plan_toolkit
from gpufleet.toolkit.settings import ToolkitSettings

GONE = "1.13.5"  # older than the oldest version in NVIDIA's repository
EL7 = OsRelease("centos", "7", ("rhel", "fedora"), "", "CentOS Linux 7")
OVER = "550.200.01"  # newer than the last driver that NVIDIA built for EL 7


def toolkit_of(facts: NodeFacts) -> ToolkitPlan:
    return plan_toolkit(ToolkitSettings(version=GONE), facts, load_catalog())


def el7(**changes: object) -> NodeFacts:
    kernel = Kernel("3.10.0-1160.119.1.el7.x86_64", "x86_64", headers=True)
    return bare_host(os=EL7, package_manager="yum", kernel=kernel, **changes)


@pytest.mark.parametrize("there", [True, False])
def test_a_toolkit_that_the_repository_no_longer_has(there: bool) -> None:
    names = toolkit_of(bare_host()).transaction.packages if there else ()
    packages = {name: Package(name, f"{GONE}-1", "amd64") for name in names}
    plan = toolkit_of(replace(converged_host(), packages=packages))
    assert (plan.action == "none") == there
    (finding,) = [each for each in plan.findings if each.code == "GF160"]
    assert finding.blocks != there


@pytest.mark.parametrize("there", [True, False])
def test_a_driver_that_was_not_built_for_the_distribution(there: bool) -> None:
    first = plan_for(el7(), driver_version=OVER)
    names = (*first.packages, *first.transaction.companions) if there else ()
    facts = el7(
        packages={name: Package(name, f"3:{OVER}-1.el7", "x86_64") for name in names},
        modules={"nvidia": OVER, "nvidia_uvm": OVER} if there else {},
        module_on_disk=ModuleOnDisk(OVER, "NVIDIA") if there else None,
        library=OVER if there else None,
    )
    plan = plan_for(facts, driver_version=OVER)
    assert (plan.action == "none") == there
    (finding,) = [each for each in plan.findings if each.code == "GF112"]
    assert finding.blocks != there
