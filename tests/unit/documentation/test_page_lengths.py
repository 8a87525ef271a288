"""A page that people write can be read in one go."""

from __future__ import annotations

import pytest
from documents import documents

MAX_GUIDE_WORDS, MAX_PAGE_WORDS = 900, 1500
GENERATED = (  # by `make docs` and `make bench`
    "docs/explanation/benchmarks.md", "docs/reference/claims.md", "docs/reference/cli.md",
    "docs/reference/combinations.md", "docs/reference/doctor-checks.md", "docs/reference/keys.md",
)  # fmt: skip
PAGES = [
    page
    for page in documents()
    if page.startswith("docs/")
    and page not in GENERATED
    and not page.startswith("docs/reference/findings/")
]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_short(page: str) -> None:
    limit = MAX_GUIDE_WORDS if page.startswith("docs/how-to/") else MAX_PAGE_WORDS
    assert len(documents()[page].split()) <= limit
