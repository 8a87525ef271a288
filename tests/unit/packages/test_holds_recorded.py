"""A hold stays in the record until it is released, because the removal follows the record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.driver.role import conclude_driver as conclude_driver
from gpufleet.facts.model import NodeFacts, Package
from gpufleet.facts.record import RoleEntry
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node
from gpufleet.node.settings import load_node_settings
from gpufleet.packages.holds import still_held
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.role.result import RoleResult
from gpufleet.toolkit.conclude import conclude_toolkit
from gpufleet.toolkit.role import ROLE as TOOLKIT
from tests.unit.hosts import converged_host, record_of, resolved_transaction

NAME = "nvidia-driver"


class Held(RoleEntry):
    """An entry of a role that does not exist."""

    role = "held"


def host(*holds: str, manager: str = "apt") -> NodeFacts:
    package = Package(NAME, "3:550.163.01-1.el7", "x86_64")
    facts = converged_host(packages={NAME: package}, holds=frozenset(holds))
    return replace(facts, package_manager=manager)


@pytest.mark.parametrize(
    ("recorded", "facts", "expected"),
    [
        (True, host(NAME), True),
        (True, host(), False),
        (False, host(NAME), False),
        (True, host(f"3:{NAME}-550.163.01-1.el7.*", manager="yum"), True),
        (True, host("3:other-550.163.01-1.el7.*", manager="yum"), False),
    ],
)
def test_a_hold_counts_where_it_is_recorded_and_there(
    recorded: bool, facts: NodeFacts, expected: bool
) -> None:
    entry = Held(held=recorded, packages={NAME: "3:550.163.01-1.el7"})
    assert still_held(entry, facts, moved=False) == expected
    assert not still_held(entry, facts, moved=True)


def results(facts: NodeFacts, found: PackageTransaction | None = None) -> list[RoleResult]:
    """The results of driver and toolkit without holds; `found`: a transaction that ran."""
    settings, problems = load_node_settings({"driver_hold": False, "toolkit_hold": False})
    assert settings is not None, problems
    node = plan_node(settings, facts, load_catalog(), facts.clock)
    driver, toolkit = node.of(DRIVER), node.of(TOOLKIT)
    assert driver is not None
    assert toolkit is not None
    return [
        conclude_driver(settings.of(DRIVER), facts, driver, found),
        conclude_toolkit(settings.of(TOOLKIT), facts, toolkit, driver.target, found),
    ]


@pytest.mark.parametrize("held", [True, False])
def test_a_setting_that_changes_does_not_make_the_record_false(held: bool) -> None:
    entry = {"packages": {NAME: "1"}, "held": True}
    holds = frozenset({NAME}) if held else frozenset()
    facts = converged_host(provenance=record_of(driver=entry, toolkit=entry), holds=holds)
    assert [result.entry.held for result in results(facts)] == [held, held]


def test_a_move_without_holds_ends_them() -> None:
    """apt ends a hold, and a lock of yum is released, when the package moves."""
    entry = {"packages": {NAME: "1"}, "held": True}
    facts = converged_host(
        provenance=record_of(driver=entry, toolkit=entry), holds=frozenset({NAME})
    )
    found = resolved_transaction(version="2", install=((NAME, "2"),))
    assert [result.entry.held for result in results(facts, found)] == [False, False]
