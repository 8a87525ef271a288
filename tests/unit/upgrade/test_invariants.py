"""Random histories of a run keep what must hold: kills, jobs, failures and requests at any time."""

from __future__ import annotations

import random

import pytest

from tests.unit.upgrade.histories import faults

FEW, MANY = 1_000, 20_000  # histories; `make histories` runs 100,000


def test_invariants_hold() -> None:
    for seed in range(FEW):
        assert faults(seed) == [], seed


@pytest.mark.extended
def test_invariants_hold_in_many_histories() -> None:
    first = random.Random(20261124).randrange(10**9)
    for seed in range(first, first + MANY):
        assert faults(seed) == [], seed
