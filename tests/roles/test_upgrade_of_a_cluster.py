"""An upgrade does not treat a cluster of the inventory as a host."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.upgrade.operations import steps


def test_a_cluster_is_left_out_of_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []
    report: Any = SimpleNamespace(left_out=SimpleNamespace(add=left.append))
    monkeypatch.setattr(steps.RunReport, "of", lambda state: report)
    monkeypatch.setattr(steps, "host", SimpleNamespace(name="@cluster/lab", groups=["gpu_cluster"]))
    steps.take_part(lambda node: pytest.fail("a cluster is no node"))
    assert left == ["@cluster/lab"]
