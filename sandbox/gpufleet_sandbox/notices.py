"""Warnings of a long command, printed at its end so that progress does not hide them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gpufleet.core.findings import Finding

_NOTICES: ContextVar[list[Finding] | None] = ContextVar("notices", default=None)


def notice(finding: Finding) -> None:
    """Add a warning to print at the end of the command; ignored outside `collected`."""
    found = _NOTICES.get()
    if found is not None and finding not in found:
        found.append(finding)


@contextmanager
def collected() -> Iterator[list[Finding]]:
    """The warnings of the block; the list grows while it runs."""
    found: list[Finding] = []
    token = _NOTICES.set(found)
    try:
        yield found
    finally:
        _NOTICES.reset(token)
