"""The plan of clusters that `gpufleet status` reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufleet.cli import reading
from gpufleet.core.process import Process


def test_an_interrupt_ends_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended: list[bool] = []

    class Interrupted(Process):
        def poll(self) -> None:
            raise KeyboardInterrupt

        def end(self) -> None:
            super().end()
            ended.append(not self.runs)

    monkeypatch.setattr(reading, "Process", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        reading.read_clusters("inv.py", ["lab"])
    assert ended == [True]


def test_without_a_report_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert reading.read_clusters("missing.py", ["lab"]) == {}
    assert reading.read_clusters("missing.py", []) == {}
