"""gpufleet's commands print none of pyinfra's own lines: gpufleet says the same, once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpufleet.core.python import python_code
from gpufleet.run.part import GPUFLEET

SAYS = "from pyinfra import host\nhost.log('a line of the user')\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An inventory with a host that refuses connections, and this machine with a user's deploy."""
    hosts = '[("gone", {"ssh_hostname": "127.0.0.1", "ssh_port": 1})]'
    (tmp_path / "inv.py").write_text(f"gpu_nodes = {hosts}\n")
    (tmp_path / "own.py").write_text('gpu_nodes = ["@local"]\n')
    (tmp_path / "deploys").mkdir()
    (tmp_path / "deploys/gpu_node.py").write_text(SAYS)
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(folder)}
    return subprocess.run(
        [*python_code(GPUFLEET), "apply", *words, "--yes"], capture_output=True, text=True,
        stdin=subprocess.DEVNULL, cwd=folder, env=environment, check=False,
    )  # fmt: skip


def test_an_unreachable_host_is_named_once(folder: Path) -> None:
    (folder / "deploys/gpu_node.py").unlink()
    done = run(folder, "inv.py")
    assert (done.returncode, "GF005 blocker gone" in done.stdout) == (1, True), done.stderr
    assert not {"-->", "refused", "known_hosts"} & set(done.stderr.split()), done.stderr
    assert run(folder, "inv.py", "-q").stderr == ""


def test_lines_of_a_users_deploy_are_printed_unless_quiet(folder: Path) -> None:
    done = run(folder, "own.py")
    assert ("a line of the user" in done.stderr, "-->" in done.stderr) == (True, False), done
    assert "a line of the user" not in run(folder, "own.py", "-q").stderr


def test_pyinfras_own_output_is_printed_if_it_is_asked_for(folder: Path) -> None:
    done = subprocess.run(
        [*python_code(GPUFLEET), "apply", "own.py", "--yes", "--", "-v"],
        capture_output=True, text=True, cwd=folder, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert "--> " in done.stderr, done
