"""Words that read as translated prose, in texts and identifiers, each with a better one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("gpufleet", "roles", "deploys", "templates", "inventories", "dashboards", "benchmarks",
           "scripts", "sandbox", "docs", "tests")  # fmt: skip
SUFFIXES = (".py", ".md", ".sh", ".yaml", ".yml", ".j2", ".toml", ".txt", ".csv", ".snap", "")
# names of tests
THEMSELVES = ("tests/unit/test_words.py", "docs/pictures", "docs/explanation/testing.md")
BETTER = {
    r"told|tells?|telling": "reported, reports; distinguish",
    r"somebody|anybody": "another user, another process",
    r"bring|brings|brought|bringing": "install, apply, upgrade",
    r"anew": "again, recreate, rebuild",
    r"mend|mends|mended": "fix, repair",
    r"heed|heeds|heeded": "honour, use",
    r"look on|looks on|looking on": "watch, report progress",
    r"stand-ins?|stands? in for": "fake, stub",
    r"played": "faked",
    r"one's own": "the user's own",
    r"wish|wishes|wished": "setting, request",
    r"rungs?": "level",
    r"on record": "recorded",
    r"flat data keys": "data keys",
    r"comes? to (its|an) end": "finish, end",
    r"keep config|keep password|keep runtime class": "ensure",
}
TEST_NAMES = re.compile(r"`tests/[^`]*`")  # a page names tests; their names are read where they are


def as_words(text: str) -> str:
    """A text whose identifiers are apart: `toldTwice` and `told_twice` as `told Twice`."""
    return re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text).replace("_", " ")


def found(text: str) -> list[str]:
    """Each bad word of a text, with a better word."""
    spaced = " ".join(as_words(TEST_NAMES.sub("", text)).split())
    return [
        f"{hit[0]} -> {better}"
        for bad, better in BETTER.items()
        for hit in re.finditer(rf"(?<![A-Za-z])(?:{bad})(?![A-Za-z])", spaced, re.IGNORECASE)
    ]


def files(*folders: str) -> Iterator[str]:
    """Paths of the checked files, relative to the root of the repository."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.is_file() and path.suffix in SUFFIXES and "__pycache__" not in name:
                yield name
    if folders == FOLDERS:
        yield from ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "config.py")


def is_in(name: str, folders: tuple[str, ...]) -> bool:
    return any(name == folder or name.startswith(folder + "/") for folder in folders)


def test_words() -> None:
    read = [name for name in files(*FOLDERS) if not is_in(name, THEMSELVES)]
    bad = {name: found((ROOT / name).read_text(errors="replace")) for name in read}
    assert {name: words for name, words in bad.items() if words} == {}
    assert len(bad) > 1000


@pytest.mark.parametrize(
    "text", ["who told_it", "is mended", "RuntimeWish", "made\n    anew", "keep_password", "TOLD"]
)
def test_a_bad_word_is_found(text: str) -> None:
    assert found(text)


@pytest.mark.parametrize(
    "text", ["recommend", "intelligent", "wrung", "fellows", "`tests/a::told`"]
)
def test_other_words_are_not(text: str) -> None:
    assert found(text) == []
