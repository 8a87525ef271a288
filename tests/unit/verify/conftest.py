"""A fake healthy host for each test."""

from __future__ import annotations

import pytest
from fake_host import FakeHost, healthy


@pytest.fixture
def fake_host() -> FakeHost:
    return healthy()
