"""A build kills its child processes when it is interrupted, terminated or times out."""

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

# A fake go whose compiler runs for minutes; other commands than `build` do nothing.
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
    """Whether `found` becomes true within 20 seconds."""
    return wait_until(found, 20)


def is_gone(folder: Path) -> bool:
    """Whether the compiler has exited; it may be a zombie."""
    state = Path("/proc", (folder / "compiler").read_text().strip(), "stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_build_that_times_out(
    module: OwnModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules, "BUILD_SECONDS", 1)
    with pytest.raises(SandboxError, match="GF602"):
        module.build("etcd", {"etcd": "example.org/etcd"}, tmp_path / "target", "")
    assert until(lambda: is_gone(tmp_path))


def test_a_build_that_is_interrupted(
    module: OwnModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules, "REPORT_EVERY", 0.0)

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
def test_a_build_that_is_terminated(module: OwnModule, tmp_path: Path, whom: str) -> None:
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


# A SIGTERM that arrives when the time limit of the build starts: the timer must end as well.
AT_ITS_LIMIT = """
import signal
from threading import Timer
from gpufleet_sandbox.cluster import modules
class Terminated(Timer):
    def start(self):
        super().start()
        os.kill(os.getpid(), signal.SIGTERM)
modules.Timer = Terminated
"""


def test_a_build_that_is_terminated_as_its_limit_begins(module: OwnModule, tmp_path: Path) -> None:
    head, build = PARENT.split("folder =", 1)
    code = f"{head}{AT_ITS_LIMIT}folder ={build}"
    words = [sys.executable, "-c", code, str(tmp_path)]
    assert subprocess.run(words, capture_output=True, check=False, timeout=900).returncode == 143


def test_a_command_that_times_out(module: OwnModule, tmp_path: Path) -> None:
    done = run([module.go, "build"], check=False, timeout=1, group=True)
    assert done.returncode == 124
    assert until(lambda: is_gone(tmp_path))
