"""Hosts made of facts, as fixtures."""

from __future__ import annotations

import pytest

from gpufleet.facts.model import NodeFacts
from tests.unit.hosts import bare_host, converged_host


@pytest.fixture
def bare() -> NodeFacts:
    return bare_host()


@pytest.fixture
def converged() -> NodeFacts:
    return converged_host()
