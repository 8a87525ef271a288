"""The lines of a failed step that the report repeats."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from gpufleet.run.report import HostReport
from gpufleet.run.step_results import ERROR_LINES, add_operations

MANY = [f"line {number}" for number in range(ERROR_LINES)]
OURS = "GF301 gpu-1: no space"


def errors(stderr: list[str], stdout: list[str]) -> list[str]:
    """The quoted lines of a failed operation with this output."""
    meta = SimpleNamespace(
        stderr_lines=stderr,
        stdout_lines=stdout,
        is_complete=lambda: True,
        did_change=lambda: False,
        did_error=lambda: True,
    )
    host: Any = MagicMock()
    host.name = "gpu-1"
    host.state.ops = {host: {"op": SimpleNamespace(operation_meta=meta)}}
    host.state.get_op_meta.return_value.names = {"Copy"}
    part = HostReport("gpu-1")
    add_operations(part, host, begun=True)
    return [line.strip(" |") for line in part.errors[0].splitlines()[1:]]


@pytest.mark.parametrize(
    ("stderr", "stdout", "shown"),
    [
        ([*MANY, "ValueError: no model"], [], [*MANY[1:], "ValueError: no model"]),
        ([OURS, *MANY], [], [OURS, *MANY[:-1]]),
        (["", " "], ["refused"], ["refused"]),
        (["refused"], ["step 1 of 2"], ["refused"]),
        ([], [], []),
    ],
)
def test_a_failed_step_shows_the_lines_with_its_reason(
    stderr: list[str], stdout: list[str], shown: list[str]
) -> None:
    assert errors(stderr, stdout) == shown
