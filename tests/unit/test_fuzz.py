"""A parser of external text raises no exception but its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import selection
from tests.fuzz.__main__ import finds
from tests.fuzz.parsers import FINDS, PARSERS, Parser

INPUTS = 10_000 if selection.extended else 100
BY_NAME = {parser.name: parser for parser in PARSERS}
KNOWN = sorted(path for path in FINDS.glob("*/*") if path.parent.name in BY_NAME)


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_damaged_input_is_read_or_refused(parser: Parser) -> None:
    assert [problem for _, problem in finds(parser, INPUTS, seed=0)] == []


@pytest.mark.parametrize("path", KNOWN, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_once_broke_a_parser(path: Path) -> None:
    assert BY_NAME[path.parent.name].broken_by(path.read_bytes()) is None


def test_every_find_belongs_to_a_parser() -> None:
    assert {path.name for path in FINDS.iterdir()} <= set(BY_NAME)
