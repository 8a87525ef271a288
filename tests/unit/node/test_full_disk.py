"""A full disk stops a host before any step, unless there is no step to take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hosts import bare_host, converged_host

from gpufleet.facts.model import NodeFacts
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_node
from gpufleet.node.settings import load_node_settings


def blocked_paths(facts: NodeFacts, **data: object) -> list[str]:
    settings = load_node_settings(data)[0]
    assert settings
    found = plan_node(settings, facts, load_catalog(), facts.clock).all_findings
    return [each.message.split(" ")[0] for each in found if each.code == "GF540"]


def without_toolkit() -> NodeFacts:
    facts = converged_host()
    return replace(
        facts,
        packages={name: each for name, each in facts.packages.items() if "container" not in name},
    )


@pytest.mark.parametrize(
    ("free", "paths"),
    [
        ({"/": 0, "/var": 0, "/usr": 10**9}, ["/", "/var"]),
        ({"/boot": 0, "/": 10**9}, []),
        ({}, []),
    ],
)
def test_the_toolkit_alone_needs_space(free: dict[str, int], paths: list[str]) -> None:
    assert blocked_paths(replace(without_toolkit(), free_bytes=free)) == paths


def test_a_host_without_steps_needs_none() -> None:
    facts = replace(bare_host(), free_bytes={"/": 0})
    assert blocked_paths(facts) == ["/"]
    assert blocked_paths(facts, driver_enabled=False, toolkit_enabled=False) == []


def test_a_path_that_the_driver_needs_is_named_once() -> None:
    assert blocked_paths(replace(bare_host(), free_bytes={"/var": 0})) == ["/var"]
