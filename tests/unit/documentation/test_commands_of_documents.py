"""Every block of commands in a document is run by a test, or the table says why none runs it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from documents import ROOT, Block, blocks, commands, documents

pytestmark = pytest.mark.claim(
    "A test runs every command of README and documents, or gives a reason.",
    level=1,
)

TABLE = Path(__file__).with_name("commands.yaml")
OURS = re.compile(r"^\s*(?:\$ )?(?:gpufleet|pyinfra|kubectl|make|pip|pipx|pytest) [a-z-]")
GENERATED = ("docs/reference/cli.md",)  # usage, as --help prints it


@cache
def table() -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load(TABLE.read_text())
    return found


def listed() -> list[tuple[str, str, Mapping[str, Any]]]:
    """Page, first line and entry in the table of each block."""
    return [(page, name, entry) for page, entries in table()["pages"].items()
            for name, entry in entries.items()]  # fmt: skip


def test_the_table_has_every_block_and_no_other() -> None:
    there = Counter((block.page, block.name) for block in commands())
    assert [block for block, number in there.items() if number > 1] == [], "two with one name"
    named = {(page, name) for page, name, _ in listed()}
    assert sorted(set(there) - named) == [], "add them to commands.yaml"
    assert sorted(named - set(there)) == [], "take them out of commands.yaml"


@pytest.mark.parametrize(("page", "name", "entry"), listed())
def test_each_is_run_by_a_test_or_says_why_not(
    page: str, name: str, entry: Mapping[str, Any]
) -> None:
    assert entry
    assert set(entry) <= {"run_by", "not_run"}
    assert "not_run" not in entry or entry["not_run"] in table()["reasons"]
    for test in entry.get("run_by", ()):
        file, _, function = test.partition("::")
        assert re.search(rf"^ *def {function}\(", (ROOT / file).read_text(), re.MULTILINE), test
        assert function.startswith("test_")


def test_every_reason_is_used() -> None:
    used = {entry["not_run"] for _, _, entry in listed() if "not_run" in entry}
    assert used == set(table()["reasons"])


def test_output_has_no_commands_in_it() -> None:
    """A block of text is not in the table."""
    texts = [
        block
        for page in documents()
        if page not in GENERATED
        for block in blocks(page)
        if block.language == "text"
    ]
    assert len(texts) > 5
    wrong = [(block.page, line) for block in texts for line in block.lines if OURS.match(line)]
    assert wrong == []


def test_blocks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "Text:\n\n    make x   # why\n    make y\n\n```sh\nls\n```\n- item\n\n```python\na\n```\n"
    )
    monkeypatch.setattr("documents.documents", lambda: {"page": text})
    assert list(blocks("page")) == [
        Block("page", "", ("make x   # why", "make y")),
        Block("page", "sh", ("ls",)),
        Block("page", "python", ("a",)),
    ]
    assert [block.name for block in commands()] == ["make x", "ls"]
