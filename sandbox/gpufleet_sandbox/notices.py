"""Warnings of a long command, which are to stand at its end: lines of progress scroll by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gpufleet.core.findings import Finding

_NOTICES: ContextVar[list[Finding] | None] = ContextVar("notices", default=None)


def notice(finding: Finding) -> None:
    """Keep a warning for the end of the command; raises nothing where no command collects them."""
    found = _NOTICES.get()
    if found is not None and finding not in found:
        found.append(finding)


@contextmanager
def collected() -> Iterator[list[Finding]]:
    """The warnings of the block, filled while it runs."""
    found: list[Finding] = []
    token = _NOTICES.set(found)
    try:
        yield found
    finally:
        _NOTICES.reset(token)
