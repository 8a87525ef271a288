"""activate.sh with a fake systemctl and docker: what it asks of systemd, in order."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpufleet.host.shell import script_file

STUBS = 'fail() { echo "$@" >&2; exit 1; }\nhas() { return 1; }\n'


def asked(folder: Path, unit: str, verb: str, kind: str) -> list[str]:
    """The commands for systemd that change something, of a unit that works."""
    log = folder / "log"
    programs = {
        "systemctl": f'[ "$1" = is-active ] || echo "$*" >>{log}',
        "docker": "echo nvidia",
        "sleep": ":",
    }
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    code = STUBS + script_file("toolkit/activate").read_text("utf-8")
    words = ["sh", "-c", code, "activate", unit, verb, kind, "", "nvidia", "failed", ""]
    path = f"{folder}:{os.environ['PATH']}"
    done = subprocess.run(words, env={"PATH": path}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [line for line in log.read_text().splitlines() if not line.startswith("reset-failed")]


@pytest.mark.parametrize(
    ("unit", "verb", "expected"),
    [
        ("docker", "restart", ["reload", "restart"]),
        ("docker", "reload", ["reload"]),
        ("containerd", "restart", ["restart"]),
    ],
)
def test_docker_reads_a_new_live_restore_before_it_stops(
    unit: str, verb: str, expected: list[str], tmp_path: Path
) -> None:
    """docker reads live-restore at its start and at a reload (moby/moby#30308,
    docs.docker.com/engine/daemon/live-restore); the plan reads it from the file."""
    done = asked(tmp_path, f"{unit}.service", verb, unit)
    assert done == [f"{word} {unit}.service" for word in expected]
