"""Select the cases that `make test` runs. The rest are marked `extended` and run in `make
test-all`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

EXTENDED = pytest.mark.extended  # for one more case among parameters
extended = True  # whether this run has the extended cases; conftest.py reads -m


def examples(number: int) -> int:
    """How many examples of a property a run tries: `make test` a third."""
    return number if extended else number // 3


def some(values: Iterable[Any], kept: Collection[Any]) -> list[Any]:
    """Parameters of which `make test` runs those that are `kept`."""
    found = list(values)
    missing = [value for value in kept if value not in found]
    assert not missing, f"{missing} are none of the parameters"
    return [
        value if value in kept else pytest.param(value, marks=pytest.mark.extended)
        for value in found
    ]
