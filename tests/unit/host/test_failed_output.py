"""What people read of a command that failed."""

from __future__ import annotations

import pytest
from pyinfra.connectors.util import OutputLine

from gpufleet.host.asking import MARK
from gpufleet.host.failed_output import for_people


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
