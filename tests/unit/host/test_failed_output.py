"""What people read of a command that failed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyinfra.connectors.util import OutputLine

from gpufleet.host.asking import MARK
from gpufleet.host.failed_output import for_people


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (["You have mail.", "", MARK, "no space", MARK], ["You have mail.", "no space"]),
        (["", MARK, "no space", "", MARK, "logout"], ["no space", "logout"]),
        ([MARK, MARK], []),
        (["no space"], ["no space"]),
        ([], []),
    ],
)
def test_the_frame_of_an_answer_is_left_out(printed: list[str], shown: list[str]) -> None:
    lines = [OutputLine("stdout", line) for line in printed]
    lines.insert(1, OutputLine("stderr", "sh: 1"))
    for_people("gpu-1", lines)
    assert [line.line for line in lines if line.buffer_name == "stdout"] == shown
    assert [line.line for line in lines if line.buffer_name == "stderr"] == ["sh: 1"]


def test_a_long_output_is_soon_short() -> None:
    line = "Get:1 http://mirror.example/ubuntu jammy/main amd64 package"
    for stream in ("stdout", "stderr"):
        lines = [OutputLine(stream, f"{line} {number}") for number in range(50_000)]
        began = time.process_time()
        for_people("gpu-1", lines)
        assert time.process_time() - began < 5, "it took 15 s"
        texts = [line.line for line in lines]
        assert texts[-1].endswith("amd64 package 49999")
        assert len(texts) < 50
        assert texts[0].startswith("(49960 lines left out; the whole output: ")


def test_what_a_script_says_last_is_first() -> None:
    lines = [OutputLine("stderr", f"apt prints {number}") for number in range(50_000)]
    lines.append(OutputLine("stderr", "GF301 gpu-1: no space"))
    for_people("gpu-1", lines)
    assert lines[0].line == "GF301 gpu-1: no space"
    assert lines[-1].line == "  | apt prints 49999"
