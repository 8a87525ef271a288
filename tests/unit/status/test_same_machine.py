"""Two names of one machine: the second is blocked in the view of the fleet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.status.groups import whole_fleet
from tests.unit.status.fleets import bare, fleet, healthy, seen


@pytest.mark.parametrize(
    ("machine", "boot", "twice"),
    [("m1", "b1", True), ("m1", "b2", False), ("m2", "b1", False), ("", "b1", False)],
)
def test_the_second_name_of_a_running_system_is_found(machine: str, boot: str, twice: bool) -> None:
    """Neither id suffices: clones share a machine id, and containers share a boot id."""
    first = seen("a", replace(bare(), machine_id="m1", boot_id="b1"))
    other = seen("b", replace(bare(), machine_id=machine, boot_id=boot))
    rows = fleet(first, other).rows
    codes = [{note.finding.code for note in row.notes} for row in rows]
    assert ["GF559" in each for each in codes] == [False, twice]


def test_gpus_of_a_machine_with_two_names_count_once() -> None:
    facts = replace(healthy(), machine_id="m1", boot_id="b1")
    once = whole_fleet(fleet(seen("a", facts))).gpus
    assert once > 0
    assert whole_fleet(fleet(seen("a", facts), seen("b", facts))).gpus == once
