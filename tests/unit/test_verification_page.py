"""Tests that pages name exist, and claims are on tests of the level that they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.claims import claims, run_by
from tests.conftest import LEVELS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/explanation/verification.md"
SECURITY = ROOT / "docs/explanation/security.md"
FAULTS = ROOT / "docs/explanation/faults.md"
REFERENCE = re.compile(r"`(tests/[\w/.-]+\.py)(?:::(\w+))?`")


def references() -> set[tuple[str, str]]:
    return {
        each for page in (PAGE, SECURITY, FAULTS) for each in REFERENCE.findall(page.read_text())
    }


@pytest.mark.parametrize(("file", "name"), sorted(references()))
def test_a_test_that_a_page_names_exists(file: str, name: str) -> None:
    path = ROOT / file
    assert path.exists(), f"{file} is named in docs and does not exist"
    if name:
        assert re.search(rf"^def {name}\(", path.read_text(), re.MULTILINE), f"{file} has no {name}"


def defined_levels() -> dict[int, set[str]]:
    """Level -> folders of its tests, of the table at the top."""
    lines = PAGE.read_text().split("\n## ")[0].splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if re.match(r"\| \d", line)]
    return {int(row[0]): set(re.findall(r"`(tests/\w+)", row[2])) for row in cells}


def test_a_claim_is_on_a_test_of_its_level() -> None:
    found = claims(ROOT)
    assert len(found) >= 150
    levels = defined_levels()
    assert [
        each for each in found if "/".join(each.test.split("/")[:2]) not in levels[each.level]
    ] == []


def test_no_claim_is_made_twice() -> None:
    texts = [each.text for each in claims(ROOT)]
    assert sorted(texts) == sorted(set(texts))


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        ([{"hosts"}], "`make test`"),
        ([{"hosts", "extended"}], "`make test-all`"),
        ([{"slow"}, {"extended"}], "`make test-all`"),
        ([set(), {"extended"}], "`make test`, all of it `make test-all`"),
        ([{"gpu"}], "`make test-gpu`"),
    ],
)
def test_who_runs_a_claims_tests(tests: list[set[str]], expected: str) -> None:
    assert run_by(tests) == expected


def test_a_claim_of_a_test_that_make_test_leaves_out_names_the_other_target() -> None:
    found = {each.test: each.run_by for each in claims(ROOT)}
    assert found["tests/hosts/test_driver_modules.py::test_a_new_kernel_gets_its_module"] == (
        "`make test-all`"
    )
    assert found["tests/gpu/test_gpu_facts.py"] == "`make test-gpu`"


def test_levels_are_numbered_one_after_the_other_and_are_what_a_run_counts() -> None:
    assert list(defined_levels()) == list(range(1, len(defined_levels()) + 1))
    counted = {int(level) for text in LEVELS.values() for level in text.split()[0].split("-")}
    assert counted == set(defined_levels())


def test_every_attack_has_a_test() -> None:
    rows = [line for line in SECURITY.read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 20
    assert [row for row in rows if not REFERENCE.search(row)] == []


def test_what_is_not_tested_names_a_command() -> None:
    rows = PAGE.read_text().split("## Not tested")[1].split("\n## ")[0].splitlines()
    cells = [row for row in rows if row.startswith("| ") and not row.startswith("| what")]
    assert len(cells) >= 10
    assert [row for row in cells if row.rpartition(" | ")[2].count("`") < 2] == []
