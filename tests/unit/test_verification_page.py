"""Tests that pages name exist, and verification.md has all claims of the README."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import LEVELS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/explanation/verification.md"
SECURITY = ROOT / "docs/explanation/security.md"
FAULTS = ROOT / "docs/explanation/faults.md"
REFERENCE = re.compile(r"`(tests/[\w/.-]+\.py)(?:::(\w+))?`")


def references(page: Path = PAGE) -> list[tuple[str, str]]:
    return sorted(set(REFERENCE.findall(page.read_text())))


@pytest.mark.parametrize(
    ("file", "name"), sorted({*references(), *references(SECURITY), *references(FAULTS)})
)
def test_a_test_that_a_page_names_exists(file: str, name: str) -> None:
    path = ROOT / file
    assert path.exists(), f"{file} is named in docs and does not exist"
    if name:
        assert re.search(rf"^def {name}\(", path.read_text(), re.MULTILINE), f"{file} has no {name}"


def fast_tests(path: Path) -> set[str]:
    """Names of the tests in a file of which `make test` runs at least one case."""
    tree = ast.parse(path.read_text())
    left_out = ("extended", "slow", "gpu")

    whole = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign)]
    if any(f"pytest.mark.{mark}" in text for text in whole for mark in left_out):
        return set()

    def marks(nodes: list[ast.expr]) -> set[str]:
        """The names in decorators such as `pytest.mark.extended`; not in their parameters."""
        return {node.attr for node in nodes if isinstance(node, ast.Attribute)}

    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and not marks(node.decorator_list).intersection(left_out)
    }


def rows() -> list[list[str]]:
    """The rows of the first table: claim, levels, tests, and the make target that runs them."""
    lines = PAGE.read_text().split("## Verified")[1].split("\n## ")[0].splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if REFERENCE.search(line)]
    return [row for row in cells if len(row) == 4]


def claims() -> list[tuple[str, str, str]]:
    """Each claim with its tests and the make target that runs them."""
    return [(row[0], row[2], row[3]) for row in rows()]


def defined_levels() -> dict[str, set[str]]:
    """Level -> folders of its tests, of the table at the top."""
    lines = PAGE.read_text().split("\n## ")[0].splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if re.match(r"\| \d", line)]
    return {row[0]: set(re.findall(r"`(tests/\w+)`", row[2])) for row in cells}


@pytest.mark.parametrize(("claim", "levels", "tests"), [row[:3] for row in rows()])
def test_a_claims_levels_are_defined_and_are_those_of_its_tests(
    claim: str, levels: str, tests: str
) -> None:
    folders = [defined_levels()[level] for level in levels.split(", ")]
    used = {"/".join(file.split("/")[:2]) for file, _ in REFERENCE.findall(tests)}
    assert all(used & folder for folder in folders), f"{claim}: a level without a test"
    assert used <= set().union(*folders), f"{claim}: a test of no level that it names"


def test_levels_are_numbered_one_after_the_other_and_are_what_a_run_counts() -> None:
    assert list(defined_levels()) == [str(number + 1) for number in range(len(defined_levels()))]
    assert {level for text in LEVELS.values() for level in text.split()[0].split("-")} == set(
        defined_levels()
    )


def test_every_claim_has_a_row_of_four_cells() -> None:
    text = PAGE.read_text().split("## Verified")[1].split("\n## ")[0]
    assert len(claims()) == sum(
        bool(REFERENCE.search(line)) for line in text.splitlines() if line.startswith("| ")
    )


@pytest.mark.parametrize(("claim", "tests", "run_by"), claims())
def test_the_page_says_who_runs_a_claims_tests(claim: str, tests: str, run_by: str) -> None:
    fast = [
        name in fast_tests(ROOT / file) if name else bool(fast_tests(ROOT / file))
        for file, name in REFERENCE.findall(tests)
    ]
    whole = all(fast) and "1.18" not in claim  # `make test` has the newest of the two alone
    expected = (
        "`make test`" if whole else "`make test`, in part" if any(fast) else "`make test-all`"
    )
    if all(file.startswith("tests/gpu/") for file, _ in REFERENCE.findall(tests)):
        expected = "`make test-gpu`"
    assert run_by == expected, claim


def test_every_attack_has_a_test() -> None:
    rows = [line for line in SECURITY.read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 20
    assert [row for row in rows if not REFERENCE.search(row)] == []


def test_the_page_has_both_tables() -> None:
    text = PAGE.read_text()
    assert len(references()) >= 20
    assert "## Not verified" in text
    for line in text.split("## Not verified")[1].splitlines():
        if line.startswith("| ") and not line.startswith(("| what", "|---")):
            assert line.count("`") >= 2, f"no command that would verify it: {line}"
