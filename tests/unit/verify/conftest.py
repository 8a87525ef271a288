"""The healthy host on paper, for each test anew."""

from __future__ import annotations

import pytest
from verify_paper import Paper, healthy


@pytest.fixture
def paper() -> Paper:
    return healthy()
