"""`gpufleet sandbox up` says what it is doing while a step takes minutes."""

from __future__ import annotations

import threading

import pytest

from gpufleet.core import live
from gpufleet_sandbox.progress import show_progress


def test_the_latest_message_is_printed_again_until_the_next(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "HEARTBEAT", 0.001)
    repeated = threading.Event()
    beat = live.LiveProgress.say

    def say(shown: live.LiveProgress, line: str) -> None:
        beat(shown, line)
        if "at work: building" in line:
            repeated.set()

    monkeypatch.setattr(live.LiveProgress, "say", say)
    with show_progress() as progress:
        progress("building the base image")
        assert repeated.wait(30)
    lines = [line.partition(" s  ")[2] for line in capsys.readouterr().err.splitlines()]
    first = lines.index("building the base image")
    assert lines[first + 1] == "at work: building the base image"
