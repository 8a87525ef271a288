"""What a build has started ends with it, whoever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpufleet_sandbox.cluster import modules
from gpufleet_sandbox.cluster.modules import OwnModule
from gpufleet_sandbox.errors import SandboxError
from gpufleet_sandbox.process import run
from gpufleet_sandbox.waiting import wait_until

# A go whose compiler goes on for minutes; of `list` and the rest it makes nothing.
GO = """#!/bin/sh
[ "$1" = build ] || exit 0
sleep 300 >/dev/null 2>&1 &
echo $! >{folder}/compiler
echo $$ >{folder}/go
echo package >&2
wait
"""


@pytest.fixture
def module(tmp_path: Path) -> OwnModule:
    go = tmp_path / "go-command"
    go.write_text(GO.format(folder=tmp_path))
    go.chmod(0o755)
    (tmp_path / "module").mkdir()
    return OwnModule(go, tmp_path / "module", os.environ, print)


def until(found: Callable[[], bool]) -> bool:
    """Whether it comes to be within seconds."""
    return wait_until(found, 20)


def is_gone(folder: Path) -> bool:
    """Whether the compiler is no more, or nothing but an entry that its new parent has to take."""
    state = Path("/proc", (folder / "compiler").read_text().strip(), "stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_build_that_takes_too_long(
    module: OwnModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules, "BUILD_SECONDS", 1)
    with pytest.raises(SandboxError, match="GF602"):
        module.build("etcd", {"etcd": "example.org/etcd"}, tmp_path / "target", "")
    assert until(lambda: is_gone(tmp_path))


def test_one_that_is_interrupted(
    module: OwnModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules, "SAY_EVERY", 0.0)

    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    interrupted = OwnModule(module.go, module.folder, module.environment, interrupt)
    with pytest.raises(KeyboardInterrupt):
        interrupted.build("etcd", {"etcd": "example.org/etcd"}, tmp_path / "target", "")
    assert until(lambda: is_gone(tmp_path))


PARENT = """
import os, sys
from pathlib import Path
from gpufleet_sandbox.cluster.modules import OwnModule
folder = Path(sys.argv[1])
module = OwnModule(folder / "go-command", folder / "module", os.environ, print)
module.build("etcd", {"etcd": "example.org/etcd"}, folder / "target", "")
"""


@pytest.mark.parametrize("whom", ["go", "us"])
def test_one_that_is_ended(module: OwnModule, tmp_path: Path, whom: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stderr=subprocess.PIPE
    ) as us:
        assert until(lambda: (tmp_path / "go").is_file() and bool((tmp_path / "go").read_text()))
        victim = us.pid if whom == "us" else int((tmp_path / "go").read_text())
        os.kill(victim, signal.SIGTERM)
        assert us.stderr
        us.stderr.read()
    assert us.returncode == (143 if whom == "us" else 1)
    assert until(lambda: is_gone(tmp_path))


def test_a_command_that_takes_too_long(module: OwnModule, tmp_path: Path) -> None:
    done = run([module.go, "build"], check=False, timeout=1, group=True)
    assert done.returncode == 124
    assert until(lambda: is_gone(tmp_path))
