"""The benchmark's arithmetic."""

from __future__ import annotations

import pytest

from benchmarks.stats import Summary, at_most, digits, growth


def test_a_summary_has_minimum_median_and_maximum() -> None:
    summary = Summary.of([3.0, 1.0, 2.5, 9.0])
    assert summary == Summary(4, 1.0, 2.75, 9.0)
    assert str(summary) == "1.00 / 2.75 / 9.00"


def test_no_run_is_no_summary() -> None:
    with pytest.raises(ValueError, match="no run"):
        Summary.of([])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.123, "0.12"), (9.994, "9.99"), (12.34, "12.3"), (123.4, "123"), (1234.0, "1234")],
)
def test_figures_have_three_digits_that_count(value: float, text: str) -> None:
    assert digits(value) == text


def test_a_budget_is_kept_up_to_its_limit() -> None:
    assert at_most("memory", 200.0, 200.0, "MiB", "look").kept
    assert not at_most("memory", 200.1, 200.0, "MiB", "look").kept


def test_a_missed_budget_says_where_to_look() -> None:
    missed = at_most("memory at 40 hosts", 312.0, 200.0, "MiB", "Look at tracemalloc.")
    assert str(missed) == (
        "MISS  memory at 40 hosts: 312 MiB, allowed 200 MiB\n      Look at tracemalloc."
    )
    kept = at_most("memory", 1.0, 2.0, "MiB", "Look at tracemalloc.")
    assert str(kept) == "pass  memory: 1.00 MiB, allowed 2.00 MiB"


def test_growth_is_per_host_between_the_ends() -> None:
    assert growth({10: 80.0, 1: 71.0, 40: 110.0}) == pytest.approx(1.0)
    assert growth({10: 80.0}) is None
