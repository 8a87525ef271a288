"""Every relative link of a document leads to a file, and to a heading of it."""

from __future__ import annotations

import os
import re
from functools import cache

import pytest
from documents import ROOT, documents

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@cache
def headings(page: str) -> frozenset[str]:
    """Anchors of a document, as GitHub and mkdocs make them of headings."""
    text = FENCED.sub("", (ROOT / page).read_text())
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower() for title in titles)
    return frozenset(re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-") for title in plain)


def broken(page: str, text: str) -> list[str]:
    """Links that lead nowhere."""
    found = []
    for link in LINK.findall(FENCED.sub("", text)):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        path = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
        there = (ROOT / path).exists()
        if not there or (anchor and path.endswith(".md") and anchor not in headings(path)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", sorted(documents()))
def test_links_lead_somewhere(page: str) -> None:
    assert broken(page, documents()[page]) == []


def test_broken_links_are_seen() -> None:
    text = "[a](docs/none.md) [b](docs/README.md#none) [c](https://example.com) [d](docs/README.md)"
    assert broken("README.md", text) == ["docs/none.md", "docs/README.md#none"]
