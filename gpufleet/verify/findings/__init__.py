"""What the checks report: `host`, `expected` and `found` are filled in by the check."""

from __future__ import annotations

from gpufleet.core.findings import Kind, blocker


def check(code: str, title: str, description: str, remedy: str) -> Kind:
    """A failed check; `description` says what it expects, `remedy` what to do next."""
    return blocker(code, title, "Expected {expected}; found {found}.", remedy, description)
