"""A change of the record alone is a step, so that a plan and its run count the same changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.driver.record import DriverEntry
from gpufleet.facts.record import EMPTY_RECORD, HostRecord
from gpufleet.node.plan import NodePlan, RolePart, _unrecorded, plan_steps
from gpufleet.node.record_merge import merge_record
from gpufleet.role.protocol import RoleContext
from gpufleet.role.result import RoleResult
from tests.unit.hosts import bare_host, record_of

ENTRY = DriverEntry(version="580.1", added=[])


def unrecorded(record: HostRecord, **role: Any) -> tuple[str, ...]:
    """The unrecorded roles of a plan with one role, which is converged unless `role` says no."""
    known = {
        "name": "driver",
        "converged": lambda plan, driver: True,
        "outcome": lambda settings, plan, context: RoleResult(ENTRY, {"/a": "0"}, "580.1"),
    }
    part = RolePart(SimpleNamespace(**(known | role)), object())
    settings: Any = SimpleNamespace(of=lambda role: None)
    return _unrecorded([part], settings, RoleContext(bare_host(provenance=record), None))


@pytest.mark.parametrize(
    ("record", "role", "found"),
    [
        (EMPTY_RECORD, {}, ("driver",)),
        (record_of(driver=ENTRY.as_json(), files={"/a": "1"}), {}, ("driver",)),
        (record_of(driver=ENTRY.as_json(), files={"/a": "0", "/b": "1"}), {}, ()),
        (EMPTY_RECORD, {"converged": lambda plan, driver: False}, ()),  # its steps record it
        (EMPTY_RECORD, {"outcome": lambda settings, plan, context: None}, ()),
    ],
    ids=["no record", "another file", "complete", "other steps", "records nothing"],
)
def test_a_converged_role_whose_record_lacks_something(
    record: HostRecord, role: dict[str, Any], found: tuple[str, ...]
) -> None:
    assert unrecorded(record, **role) == found


def test_it_is_a_step() -> None:
    context = RoleContext(bare_host(), None)
    plan = NodePlan((), context=context, unrecorded=("driver",))
    assert plan_steps(plan) == ["driver: record what is installed"]


def test_a_record_that_lacks_nothing_is_left_alone() -> None:
    part = {"driver": {"version": "1"}, "files": {"/a": "0"}}
    before = {**part, "files": {"/a": "0", "/b": "1"}, "toolkit": {"version": "2"}}
    assert merge_record(before, part, "now") is None
