"""docs/verification.md names tests that exist, and README's claims are all on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/verification.md"
REFERENCE = re.compile(r"`(tests/[\w/.-]+\.py)(?:::(\w+))?`")


def references() -> list[tuple[str, str]]:
    return sorted(set(REFERENCE.findall(PAGE.read_text())))


@pytest.mark.parametrize(("file", "name"), references())
def test_a_test_that_the_page_names_exists(file: str, name: str) -> None:
    path = ROOT / file
    assert path.exists(), f"{file} is named in docs/verification.md and does not exist"
    if name:
        assert re.search(rf"^def {name}\(", path.read_text(), re.MULTILINE), f"{file} has no {name}"


def test_the_page_has_both_tables() -> None:
    text = PAGE.read_text()
    assert len(references()) >= 20
    assert "## Not verified" in text
    for line in text.split("## Not verified")[1].splitlines():
        if line.startswith("| ") and not line.startswith(("| what", "|---")):
            assert line.count("`") >= 2, f"no command that would verify it: {line}"
