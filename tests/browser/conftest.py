"""Pages are looked at in a real browser; without one each test says so."""

from __future__ import annotations

import pytest

from scripts.browser import PROGRAMS, program


@pytest.fixture(autouse=True)
def _browser() -> None:
    if program() is None:
        pytest.skip(f"none of {', '.join(PROGRAMS)} is installed: make setup-browser")
