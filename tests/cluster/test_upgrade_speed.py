"""The benchmark of upgrades, on a fleet of a few simulated nodes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks import upgrade

NODES, PODS = 14, 60


@pytest.mark.extended
def test_a_small_fleet_is_planned_and_drained(tmp_path: Path) -> None:
    said: list[str] = []
    found = upgrade.measure(f"speed-{os.getpid()}", tmp_path, said.append, NODES, PODS)
    assert (found.nodes, found.drained, found.pods) == (NODES, NODES // 2, PODS)
    assert (found.left, found.broken) == (0, 0)
    assert found.rate > 0
    assert 0 < found.memory < 500
    assert min(found.plan, found.prepare, found.cpu) > 0
    log = (tmp_path / "draining.log").read_text()
    assert log.count(": draining\n") == found.drained
    assert said[-1].startswith(f"{PODS} pods evicted")
