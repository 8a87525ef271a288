"""The plan of a host names known-bad combinations before anything is changed."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from gpufleet.combinations.findings import KNOWN_BAD
from gpufleet.core.findings import Severity
from gpufleet.facts.gpu import Listed
from gpufleet.facts.model import Kernel, NodeFacts, OsRelease, Package, Runtime
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node
from gpufleet.node.settings import load_node_settings
from tests.unit.hosts import bare_host, converged_host

pytestmark = pytest.mark.claim(
    "A plan warns of known-bad combinations of versions before a change.", level=1
)


def judged(facts: NodeFacts, **data: Any) -> dict[str, Severity]:
    """The entries that a plan reports, with their severity."""
    settings, problems = load_node_settings(data)
    assert settings is not None, problems
    plan = plan_node(settings, facts, load_catalog(), facts.clock)
    known = [each for each in plan.all_findings if each.code == KNOWN_BAD.code]
    named = [(re.findall(r"\(([a-z0-9.-]+)\)", each.message), each) for each in known]
    return {names[0]: each.severity for names, each in named}


def debian13(kernel: str = "6.19.3+deb13-amd64") -> NodeFacts:
    system = OsRelease("debian", "13", (), "trixie", "Debian 13")
    return bare_host(os=system, kernel=Kernel(kernel, "x86_64", headers=True, secure_boot=False))


def test_names_a_driver_that_does_not_build_for_the_kernel() -> None:
    wanted = {"driver_version": "580.126.09", "toolkit_enabled": False}
    assert judged(debian13(), **wanted) == {"driver-580-kernel-6.19": Severity.WARNING}
    assert judged(debian13("6.12.57+deb13-amd64"), **wanted) == {}
    assert judged(debian13(), toolkit_enabled=False, driver_version="580.178.04") == {}


def test_the_sources_of_a_distribution_are_not_judged() -> None:
    facts = bare_host(kernel=Kernel("6.19.0-4-generic", "x86_64", headers=True))
    wanted = {"toolkit_enabled": False, "driver_version": "580.126.09"}
    assert judged(facts, **wanted) == {"driver-580-kernel-6.19": Severity.WARNING}
    assert judged(facts, **wanted, driver_source="distro") == {}


def test_a_driver_without_a_version_is_not_judged() -> None:
    assert judged(debian13(), toolkit_enabled=False, driver_branch=580) == {}


def test_a_toolkit_is_judged_with_the_runtime_that_is_there() -> None:
    containerd = Runtime("containerd", "2.2.1", "containerd.service", "", running=True)
    facts = converged_host("580.178.04", runtimes={"containerd": containerd})
    bad = judged(facts, toolkit_version="1.18.0")
    assert bad["toolkit-1.18.0-drop-in"] is Severity.INFO
    assert not [name for name in judged(facts, toolkit_version="1.20.1") if "1.18.0" in name]
    older = replace(containerd, version="1.7.33")
    facts = replace(facts, runtimes={"containerd": older})
    assert "toolkit-1.18.0-drop-in" not in judged(facts, toolkit_version="1.18.0")


def test_what_is_there_is_judged_even_if_nothing_changes() -> None:
    facts = converged_host("570.148.08", listed=Listed(1, mig_devices=2), kubelet=True)
    kept = {"driver_version": "570.148.08", "toolkit_enabled": False}
    assert judged(facts, **kept) == {"driver-570-mig": Severity.WARNING}
    assert judged(replace(facts, listed=Listed(1)), **kept) == {}
    assert judged(replace(facts, kubelet=False), **kept) == {}


def test_a_plan_that_leaves_a_combination_does_not_report_it() -> None:
    facts = converged_host("580.178.04")
    old = {"datacenter-gpu-manager": Package("datacenter-gpu-manager", "1:3.3.5", "amd64")}
    facts = replace(facts, packages={**facts.packages, **old})
    assert judged(facts, toolkit_enabled=False) == {"dcgm-4.3-driver-580": Severity.WARNING}
