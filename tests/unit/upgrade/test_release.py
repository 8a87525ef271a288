"""Which hosts the end of a run leaves to others."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufleet.upgrade.models import HostView
from gpufleet.upgrade.operations.preparing import _unchanged
from gpufleet.upgrade.plan import make_plan
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.upgrade.states import State
from tests.unit.upgrade.running import Steps, running

VIEWS = [
    HostView(f"{model}{number}", model, "d", "k", "1", "1", "2")
    for model in "ab"
    for number in range(5)
]  # canaries a0 b0, waves a1 a2, a3 a4, b1 b2, b3 b4


@pytest.mark.parametrize(
    ("states", "released"),
    [
        ({}, "a0 b0"),  # a process that was killed may have prepared them
        ({"a0": State.DONE, "b0": State.DONE}, "a1 a2"),
        # the waves of a lost group are passed over
        ({"a0": State.STUCK, "b0": State.DONE}, "a1 a2 a3 a4 b1 b2"),
        (
            {"a0": State.REVERTED, "b0": State.DONE, "b1": State.READY},
            "a1 a2 a3 a4 b1 b2 b3 b4",
        ),
        ({"a0": State.DONE, "b0": State.DONE, "a1": State.READY, "a2": State.REFUSED},
         "a1 a2 a3 a4"),
    ],
)  # fmt: skip
def test_what_may_be_prepared_is_released(
    states: dict[str, State], released: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    run = running(make_plan(VIEWS, UpgradeSettings(wave=2)), Steps())
    run.progress.states |= states
    run.progress.since |= dict.fromkeys(states, 1.0)
    assert _unchanged(run) == released.split()
