"""The commands of examples/slurm.py, with a fake scontrol and sinfo."""

from __future__ import annotations

import os
import runpy
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.unit.documentation.documents import ROOT

DRAIN, READY = "upgrade_drain_command", "upgrade_ready_command"
SCONTROL = 'echo "$@" >> log; echo drained > state'
SINFO = """while [ "$1" != -o ]; do shift; done
case $2 in %E) cat reason ;; %T) cat state ;; *) echo "$(cat state) $(cat reason)" ;; esac"""


def ran(
    folder: Path, key: str, state: str, reason: str, scontrol: str = SCONTROL
) -> tuple[int, str]:
    """Exit status of a command, and the calls of scontrol."""
    (folder / "state").write_text(state)
    (folder / "reason").write_text(reason)
    log = folder / "log"
    log.touch()
    for name, script in {
        "sinfo": SINFO,
        "scontrol": scontrol,
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    data = runpy.run_path(str(ROOT / "examples/slurm.py"))["gpu_nodes"][1]
    words = [word.replace("{host}", "n1") for word in shlex.split(data[key])]
    path = f"{folder}:{os.environ['PATH']}"
    done = subprocess.run(words, cwd=folder, env={"PATH": path}, check=False, timeout=60)
    return done.returncode, log.read_text()


@pytest.mark.parametrize(
    ("state", "reason", "status"),
    [("idle", "none", 0), ("drained", "gpufleet", 0), ("drained", "NHC: check_nv", 1),
     ("draining", "fan", 1), ("down*", "Not responding", 1)],
)  # fmt: skip
def test_a_node_that_another_user_drained_is_left_alone(
    tmp_path: Path, state: str, reason: str, status: int
) -> None:
    found, calls = ran(tmp_path, DRAIN, state, reason)
    assert found == status
    drained = "update nodename=n1 state=drain reason=gpufleet\n"
    assert calls == ("" if status else drained)


def test_a_name_that_slurm_does_not_know_is_not_waited_for(tmp_path: Path) -> None:
    """sinfo prints nothing for it, and a drain would wait for a day."""
    status, _ = ran(tmp_path, DRAIN, "", "", scontrol="exit 1")
    assert status == 1


@pytest.mark.parametrize(("reason", "resumed"), [("gpufleet", True), ("NHC: check_nv", False)])
def test_only_a_node_that_gpufleet_drained_is_resumed(
    tmp_path: Path, reason: str, resumed: bool
) -> None:
    status, calls = ran(tmp_path, READY, "drained", reason)
    assert status == 0
    assert calls == ("update nodename=n1 state=resume\n" if resumed else "")
