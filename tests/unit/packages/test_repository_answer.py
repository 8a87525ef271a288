"""The answers of the repositories add versions, packages and download sizes to a plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, describe_plan, plan_node, plan_steps
from gpufleet.node.settings import load_node_settings
from gpufleet.packages.transaction import ASKED_LATER
from gpufleet.packages.trial import apt_download, apt_moved
from tests.unit.hosts import bare_host, converged_host

URIS = """\
Reading package lists...
'https://mirror/a_580.1-1_amd64.deb' a_580.1-1_amd64.deb 1500 SHA256:00
'https://mirror/b%2b_580.1-1_amd64.deb' b+_580.1-1_amd64.deb 500 SHA256:11
""".splitlines()
SIMULATION = """\
Inst a [570.1-1] (580.1-1 NVIDIA:580 [amd64])
Inst b:i386 (580.1-1 NVIDIA:580 [i386])
Conf a (580.1-1 NVIDIA:580 [amd64])
Remv c [1]
""".splitlines()


def plan_of(facts: Any, **data: Any) -> NodePlan:
    settings, problems = load_node_settings(data)
    assert settings, problems
    return plan_node(settings, facts, load_catalog(), facts.clock)


def answered(plan: NodePlan) -> NodePlan:
    """The plan after an answer with 590.99.01 for each transaction without a version."""
    found = [
        replace(each, version=each.version or "590.99.01", moved=("a", "b"), download=2_500_000)
        for each in plan.transactions
    ]
    return plan.with_transactions(found)


def test_sizes_and_names_are_those_that_apt_lists() -> None:
    assert apt_download(URIS) == 2000
    assert apt_moved(SIMULATION) == ("a", "b")


def test_every_package_step_has_the_answer() -> None:
    plan = plan_of(bare_host(), driver_branch="590")
    assert ASKED_LATER in "".join(plan_steps(plan))
    assert describe_plan(plan)["downloads"] == []
    known = answered(plan)
    said = [step for step in plan_steps(known) if "to download" in step]
    assert len(said) == len(plan.transactions) > 1
    assert all(step.endswith(", 2 packages, 2.5 MB to download") for step in said)
    assert ASKED_LATER not in "".join(plan_steps(known))
    assert [step for step in plan_steps(known) if "install the driver: 590.99.01" in step]
    assert describe_plan(known)["downloads"][0] == {
        "title": "driver", "packages": ["a", "b"], "bytes": 2_500_000
    }  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_plan_takes_exactly_its_own_transactions(count: int) -> None:
    """Each answer belongs to one transaction, in the order of the roles."""
    plan = plan_of(bare_host(), exporter_enabled=True, exporter_mode="systemd")
    assert len(plan.transactions) == 4  # driver, toolkit, DCGM, exporter
    found = [replace(each, version=f"1.{n}") for n, each in enumerate(plan.transactions)]
    versions = [each.version for each in plan.with_transactions(found).transactions]
    assert versions[count] == f"1.{count}"


def test_a_converged_host_has_nothing_to_ask() -> None:
    data = {"driver_version": "580.178.04", "toolkit_enabled": False}
    assert plan_of(converged_host(), **data).transactions == ()
