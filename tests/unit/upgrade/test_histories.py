"""The invariants of every history of an upgrade."""

from __future__ import annotations

import pytest

from tests.unit.upgrade.histories import history

pytestmark = pytest.mark.claim(
    "In random histories of an upgrade no job ends, the budget holds, and no host stays "
    "out of service without a reason.",
    level=1,
)


def test_what_must_hold_holds_in_random_histories() -> None:
    assert {seed: wrong for seed in range(150) if (wrong := history(seed)[1])} == {}


@pytest.mark.extended
def test_what_must_hold_holds_in_many_histories() -> None:
    assert {seed: wrong for seed in range(1000, 4000) if (wrong := history(seed)[1])} == {}
