"""Progress while hosts are read: one line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
from typing import Any, cast

import pytest

from gpufleet.cli.reading import Shown


class Live:
    """The live line of a terminal."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, text: str) -> None:
        self.shown.append(text)


def test_each_answer_moves_the_line_on_a_terminal() -> None:
    shown = Shown()
    live = Live()
    shown.hosts, shown.live = 3, cast(Any, live)
    shown.answered()
    shown.answered()
    shown.beat()
    assert live.shown[:2] == ["Read 1 of 3 hosts", "Read 2 of 3 hosts"]
    assert live.shown[2].startswith("Read 2 of 3 hosts, ")


def test_a_pipe_has_a_line_at_the_beginning_and_at_each_beat(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = Shown()
    shown.began(1)
    shown.answered()
    shown.beat()
    first, second = capsys.readouterr().err.splitlines()
    assert (first, second.startswith("Read 1 of 1 host, ")) == ("Reading 1 host", True)


def test_hosts_are_read_where_nobody_reads_the_progress() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.MonkeyPatch.context() as patch, open(writer, "w", buffering=1) as stderr:
        patch.setattr(sys, "stderr", stderr)
        shown = Shown()
        shown.began(1)
        shown.answered()
        shown.beat()
        os.dup2(os.open(os.devnull, os.O_WRONLY), writer)  # what is left is written at the end
    assert shown.done == 1
