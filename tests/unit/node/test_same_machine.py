"""Two names of one machine: the second is blocked, before anything is changed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from pyinfra.api.exceptions import NoGroupError

from gpufleet.node.catalog import load_catalog
from gpufleet.node.operations.place import place_of
from gpufleet.node.plan import plan_node
from gpufleet.node.settings import load_settings
from gpufleet.role.place import Place
from tests.unit.hosts import bare_host

NOW = 1_795_600_000


class Inventory:
    def get_group(self, name: str) -> list[Any]:
        raise NoGroupError(name)


class State:
    """Of a run without a control plane."""

    inventory = Inventory()


def host(name: str) -> Any:
    return SimpleNamespace(name=name, groups=["gpu_nodes"])


def test_the_second_name_of_a_running_system_is_found() -> None:
    facts = replace(bare_host(), machine_id="m1", boot_id="b1")
    state = cast(Any, State())
    assert place_of(state, host("a"), facts).same_machine is None
    assert place_of(state, host("a"), facts).same_machine is None, "it is read again"
    assert place_of(state, host("b"), facts).same_machine == ("b", "a")


def test_clones_and_containers_are_machines_of_their_own() -> None:
    state = cast(Any, State())
    for name, machine, boot in (("a", "m1", "b1"), ("b", "m1", "b2"), ("c", "m2", "b1")):
        facts = replace(bare_host(), machine_id=machine, boot_id=boot)
        assert place_of(state, host(name), facts).same_machine is None


def test_it_blocks_the_plan() -> None:
    settings, _ = load_settings({})
    assert settings
    facts, catalog = bare_host(clock=NOW), load_catalog()
    plan = plan_node(settings, facts, catalog, NOW, place=Place(same_machine=("b", "a")))
    assert [each.code for each in plan.blockers] == ["GF559"]
