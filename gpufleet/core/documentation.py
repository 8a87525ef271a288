"""Addresses in the documentation."""

from __future__ import annotations

import os

FINDINGS = "reference/findings"


def address_of(code: str) -> str:
    """Where a finding is explained: on the site whose URL is in GPUFLEET_DOCS, else in gpufleet's
    repository. Both pages have a heading for each code."""
    if site := os.environ.get("GPUFLEET_DOCS"):
        return f"{site.rstrip('/')}/{FINDINGS}.html#{code.lower()}"
    return f"In gpufleet's repository: docs/{FINDINGS}.md#{code.lower()}"
