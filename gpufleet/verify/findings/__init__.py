"""Findings of the checks. The check fills in `host`, `expected` and `found`."""

from __future__ import annotations

from gpufleet.core.findings import Kind, blocker


def check(code: str, title: str, description: str, remedy: str) -> Kind:
    """Declare a failed check. `description` says what it expects, `remedy` what to do next."""
    return blocker(code, title, "Expected {expected}; found {found}.", remedy, description)
