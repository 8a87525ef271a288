"""The text of a host's file, as its own shell sends it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from gpufleet.containerd.operations import FileText


def read(path: Path) -> str | None:
    fact = FileText()
    words = ["sh", "-c", fact.command(str(path)).get_raw_value()]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return fact.process(done.stdout.splitlines())


def test_a_file_is_read_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "config 'one'.toml"
    for text in ("version = 2\n", "", "ü\n" * 99 + "no newline at the end"):
        file.write_text(text)
        assert read(file) == text
    assert read(tmp_path / "missing") is None
    assert FileText().process(["cut off"]) is None
