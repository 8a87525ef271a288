"""Every `source:` of the catalog's files is a public page, with the day on which it was read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.claim("Every fact of the catalog names a public page.", level=1)

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted(ROOT.glob("gpufleet/*/data/**/*.yaml"))
PUBLIC = re.compile(
    r"https://[\w.-]+\.\w+/\S*(?: and https://\S+)* "
    r"\((?:read|not read)\b[^)]*\b2026-\d\d(-\d\d)?\b"
)
PRIVATE = re.compile(  # not in a link: a test of links finds those
    r"(?<![(/])\b(?:nvidia|kubernetes|kubeadm|control-planes|field|peers|house)\.md|§"
)


def sources(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Place in the file and text of every source."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if re.fullmatch(r"(\w+_)?source", str(key)) and isinstance(inner, str):
                yield f"{place}.{key}", inner
            else:
                yield from sources(inner, f"{place}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from sources(inner, f"{place}[{number}]")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_source_is_a_public_page(file: Path) -> None:
    found = list(sources(yaml.safe_load(file.read_text())))
    assert [(place, text) for place, text in found if not PUBLIC.match(text)] == []


def test_the_check_sees_what_is_no_page() -> None:
    assert not PUBLIC.match("nvidia.md 7.2")
    assert not PUBLIC.match("https://github.com/NVIDIA/DCGM")
    assert not PUBLIC.match("NVIDIA/DCGM (read 2026-11-20)")
    assert PUBLIC.match("https://github.com/NVIDIA/DCGM (read 2026-11-20); v4.6.0")


def test_code_and_pages_cite_no_document_that_is_not_here() -> None:
    texts = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("roles/**/*.md")]
    for folder in (
        "gpufleet",
        "roles",
        "deploys",
        "scripts",
        "benchmarks",
        "dashboards",
        "sandbox",
    ):
        texts += [*ROOT.glob(f"{folder}/**/*.py"), *ROOT.glob(f"{folder}/**/*.sh")]
    texts += FILES
    assert [str(path) for path in texts if PRIVATE.search(path.read_text())] == []
    assert [str(path) for path in texts if "DESIGN" in path.read_text()] == []
