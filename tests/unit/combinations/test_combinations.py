"""Every entry of combinations.yaml: it fits versions in its ranges, and none beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

import pytest

from gpufleet.combinations.judge import judge_combinations
from gpufleet.combinations.models import (
    NO_COMPONENTS,
    Combination,
    Components,
    VersionRange,
    load_combinations,
)
from gpufleet.core.versions import version_tuple

pytestmark = pytest.mark.claim("Known-bad combinations of versions are reported.", level=1)

TABLE = load_combinations()
every = pytest.mark.parametrize("entry", TABLE.combinations, ids=lambda entry: entry.id)


def below(version: str) -> str:
    """The next lower version: 1.18.0 gives 1.17.999, and 6.12 gives 6.11."""
    numbers = [*version_tuple(version)]
    while numbers and not numbers[-1]:
        numbers.pop()
    lower = [*numbers[:-1], numbers[-1] - 1, *([999] if len(numbers) < 3 else [])]
    return ".".join(map(str, lower))


def inside(each: VersionRange) -> str:
    return each.since or below(each.until)


def is_in(version: str, each: VersionRange) -> bool:
    """Written again here: a near miss must not depend on the code that it tests."""
    number, end = version_tuple(version), version_tuple(each.until)
    return version_tuple(each.since) <= number and (not end or number < end)


def hit(entry: Combination, number: int = 0) -> Components:
    """Components with the conditions of an entry, each version in one of its ranges."""
    versions = {
        name: inside(ranges[min(number, len(ranges) - 1)])
        for name, ranges in entry.versions.items()
    }
    return Components(versions, frozenset(entry.traits))


def near_misses(entry: Combination) -> Iterator[Components]:
    """The components with one condition that is just not met."""
    found = hit(entry)
    for name, ranges in entry.versions.items():
        yield replace(found, versions={**found.versions, name: ""})
        yield replace(found, versions={k: v for k, v in found.versions.items() if k != name})
        for each in ranges:
            outside = [each.until] if each.until else []
            outside += [below(each.since)] if each.since else []
            for version in outside:
                if not any(is_in(version, other) for other in ranges):
                    yield replace(found, versions={**found.versions, name: version})
    for trait in entry.traits:
        yield replace(found, traits=found.traits - {trait})


def ids(installed: Components, wanted: Components = NO_COMPONENTS) -> list[str]:
    """The entries that are reported."""
    found = judge_combinations(installed, wanted, TABLE)
    return [match[1] for each in found if (match := re.search(r"\(([a-z0-9.-]+)\)", each.message))]


@every
def test_fits_versions_in_its_ranges(entry: Combination) -> None:
    for number in range(max(map(len, entry.versions.values()))):
        assert entry.id in ids(hit(entry, number))


@every
def test_fits_nothing_beside_its_ranges(entry: Combination) -> None:
    for found in near_misses(entry):
        assert entry.id not in ids(found), found


@every
def test_is_a_complete_entry(entry: Combination) -> None:
    assert re.search(r"https://\S+ .*\(read 2\d{3}-\d\d-\d\d\)", entry.source), "source and date"
    assert entry.happens.endswith(".")
    assert entry.remedy.endswith(".")
    for ranges in entry.versions.values():
        for each in ranges:
            assert each.since or each.until
            assert not each.until or version_tuple(each.since) < version_tuple(each.until)


def test_entries_have_different_ids() -> None:
    found = [entry.id for entry in TABLE.combinations]
    assert len(found) == len({*found}) >= 40
    assert TABLE.as_of <= date(2100, 1, 1)


def test_severity_is_that_of_the_entry() -> None:
    for entry in TABLE.combinations:
        found = judge_combinations(
            hit(entry), NO_COMPONENTS, TABLE.model_copy(update={"combinations": (entry,)})
        )
        assert [each.severity for each in found] == [entry.severity]
        assert entry.source in found[0].remedy


def test_a_run_that_leaves_a_combination_is_not_warned_of_it() -> None:
    bad = Components({"toolkit": "1.18.0", "containerd": "2.2.1"})
    assert "toolkit-1.18.0-imports" in ids(bad)
    assert "toolkit-1.18.0-imports" not in ids(bad, Components({"toolkit": "1.20.1"}))


def test_a_version_that_only_the_repository_knows_is_not_judged() -> None:
    bad = Components({"driver": "570.148.08"}, frozenset({"mig", "kubelet"}))
    assert ids(bad) == ["driver-570-mig"]
    assert ids(bad, Components({"driver": ""})) == []


@pytest.mark.parametrize(
    ("version", "covered"),
    [("1.17.9", False), ("v1.18.0", True), ("1.18.0-1", True), ("1.18.1", False), ("", False)],
)
def test_a_range_begins_with_since_and_ends_before_until(version: str, covered: bool) -> None:
    assert VersionRange(since="1.18.0", until="1.18.1").covers(version) is covered
    assert not VersionRange(until="1.18.0").covers("unknown")
