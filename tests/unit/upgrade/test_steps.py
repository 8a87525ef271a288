"""A step that finds nothing to do on a host that lost its GPUs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.upgrade.operations import steps
from gpufleet.upgrade.settings import UpgradeSettings

SETTINGS = UpgradeSettings.model_validate({})


@pytest.mark.parametrize(
    "step", [steps.prepare, lambda settings: steps.change(settings, lambda node: None)]
)
def test_a_host_whose_gpus_are_gone_is_no_success(step: Any, monkeypatch: Any) -> None:
    blocked: list[Any] = []
    report = SimpleNamespace(block=lambda host, found: blocked.extend(found))
    lost = SimpleNamespace(
        plan=SimpleNamespace(of=lambda role: None), facts=SimpleNamespace(gpus=())
    )
    monkeypatch.setattr(steps, "RunReport", SimpleNamespace(of=lambda state: report))
    monkeypatch.setattr(steps, "current_node", lambda: lost)
    step(SETTINGS)
    assert [each.code for each in blocked] == ["GF052"]
