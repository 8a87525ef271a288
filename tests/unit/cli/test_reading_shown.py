"""Progress while hosts are read: one line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys

import pytest

from gpufleet.cli.reading import Shown


def test_a_pipe_has_a_line_at_the_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Shown()
    shown.began(2)
    shown.answered()
    shown.live.stop()
    assert capsys.readouterr().err == "Reading 2 hosts\n"
    assert shown.line == "Read 1 of 2 hosts, 0 s"


def test_hosts_are_read_where_nobody_reads_the_progress() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.MonkeyPatch.context() as patch, open(writer, "w", buffering=1) as stderr:
        patch.setattr(sys, "stderr", stderr)
        shown = Shown()
        shown.began(1)
        shown.answered()
        shown.live.stop()
        os.dup2(os.open(os.devnull, os.O_WRONLY), writer)  # the rest is flushed on close
    assert shown.line.startswith("Read 1 of 1 host,")
