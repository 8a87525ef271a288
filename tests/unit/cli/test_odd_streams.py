"""Commands with a closed standard error, or an output encoding that lacks a letter of a name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MAIN = "from gpufleet.cli import main; main()"
INVENTORY = 'gpu_nodes = [("gpü", {"ssh_hostname": "127.0.0.1", "ssh_port": 1})]\n'
ONE = {"plan": "1 not reached", "status": "1 unreachable", "verify": "GF710"}
COMMANDS = pytest.mark.parametrize(
    "command", ["plan", "status", pytest.param("verify", marks=pytest.mark.extended)]
)


def run(command: str, folder: Path, redirection: str, **variables: str) -> tuple[int, str, str]:
    (folder / "inv.py").write_text(INVENTORY, "utf-8")
    words = [sys.executable, "-c", MAIN, command, "inv.py"]
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {redirection}', *words], capture_output=True, text=True,
        encoding="utf-8", check=False, timeout=200, cwd=folder, env={**os.environ, **variables},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@COMMANDS
def test_a_name_that_the_encoding_does_not_have_is_escaped(command: str, tmp_path: Path) -> None:
    status, results, errors = run(command, tmp_path, "", PYTHONIOENCODING="ascii")
    assert "Traceback" not in errors
    assert ONE[command] in results
    assert "gp\\xfc" in results
    assert not any(line.endswith("\\n") for line in results.splitlines())
    assert status == 1


@COMMANDS
def test_results_are_there_where_standard_error_is_closed(command: str, tmp_path: Path) -> None:
    status, results, errors = run(command, tmp_path, "2>&-", PYTHONIOENCODING="utf-8")
    assert (status, errors) == (1, "")
    assert ONE[command] in results
    assert "gpü" in results
