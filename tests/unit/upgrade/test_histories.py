"""The invariants of every history of an upgrade."""

from __future__ import annotations

import pytest

from tests.unit.upgrade.histories import history


def test_what_must_hold_holds_in_random_histories() -> None:
    assert {seed: wrong for seed in range(150) if (wrong := history(seed)[1])} == {}


@pytest.mark.extended
def test_what_must_hold_holds_in_many_histories() -> None:
    assert {seed: wrong for seed in range(1000, 4000) if (wrong := history(seed)[1])} == {}
