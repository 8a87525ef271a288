"""The script that holds a host's lock, in a real shell, on a file of the test."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path("gpufleet/operations/scripts/hold_host.sh")


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("alice [1]", "."),
        ("carol [3]", "."),  # our own: the process that held it before has ended
        ("bob [2]", "changed bob [2]"),
        ("", "changed "),
    ],
)
def test_it_is_taken_where_nobody_else_was_since(inside: str, said: str, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.write_text(f"{inside}\n")
    with subprocess.Popen(
        ["sh", SCRIPT, lock, "alice [1]", "carol [3]"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        line = process.stdout.readline()
        process.kill()
    assert line == f"{said}\n"
    assert lock.read_text().strip() == ("carol [3]" if said == "." else inside)
