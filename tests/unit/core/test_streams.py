"""Standard streams that are closed, or have an encoding that lacks a letter."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from gpufleet.core.streams import HidingStream

PROGRAM = """
import os, subprocess, sys
from gpufleet.core.streams import prepare_streams
prepare_streams()
with open({path!r}, "w") as file:
    print("results: gp\\u00fc\\ud800")
    print("errors: gp\\u00fc\\ud800", file=sys.stderr)
    answer = sys.stdin.read() + ("" if sys.stdin.isatty() else "no terminal")
    program = "import sys; sys.stderr.write(sys.stdin.read() + 'child')"
    subprocess.run([sys.executable, "-c", program])
    print(answer, file.fileno() > 2)
"""


@pytest.mark.parametrize("closed", ["", "<&-", "2>&-", "<&- 2>&-"])
@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_no_closed_stream_and_no_letter_ends_a_process(
    closed: str, encoding: str, tmp_path: Path
) -> None:
    program = PROGRAM.format(path=str(tmp_path / "file"))
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, program],
        capture_output=True, check=False, timeout=100, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )  # fmt: skip
    letter = "ü" if encoding == "utf-8" else "\\xfc"
    assert done.stdout.decode() == f"results: gp{letter}\\ud800\nno terminal True\n"
    assert done.returncode == 0
    errors = "" if "2" in closed else f"errors: gp{letter}\\ud800\nchild"
    assert done.stderr.decode() == errors
    assert (tmp_path / "file").read_text() == ""


def test_bytes_are_written_as_text_to_a_stream_that_click_takes_for_text() -> None:
    written = io.StringIO()
    stream = HidingStream(written)
    with pytest.raises(TypeError):
        stream.write(b"")  # click's question: a stream that takes it is wrapped as binary
    click.echo(b"complete", file=stream)
    assert written.getvalue() == "complete\n"
