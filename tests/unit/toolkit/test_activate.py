"""activate.sh with a fake systemctl and docker: what it asks of systemd, in order."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gpufleet.host.shell import script_file

STUBS = 'fail() { echo "$@" >&2; exit 1; }\nhas() { return 1; }\n'


def asked(
    folder: Path, unit: str, verb: str, kind: str, read: str, daemon: str, needs: str = ""
) -> list[str]:
    """The commands for systemd that change something, of a unit that works. `read`: docker's
    live-restore before a reload; `daemon`: the text of its file; `needs`: what docker requires."""
    log, file = folder / "log", folder / "daemon.json"
    file.write_text(daemon)
    live = f"if grep -q reload {log}; then echo true; else echo {read}; fi"
    programs = {
        "systemctl": f"case $1 in is-active) ;; show) echo Requires={needs} ;; "
        f'*) echo "$*" >>{log} ;; esac',
        "docker": f'case "$*" in *LiveRestore*) {live} ;; *) echo nvidia ;; esac',
        "sleep": ":",
    }
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    code = STUBS + script_file("toolkit/activate").read_text("utf-8")
    code = code.replace("/etc/docker/daemon.json", str(file))
    log.write_text("")
    words = ["sh", "-c", code, "activate", unit, verb, kind, "", "nvidia", "failed", ""]
    path = f"{folder}:{os.environ['PATH']}"
    done = subprocess.run(words, env={"PATH": path}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [line for line in log.read_text().splitlines() if not line.startswith("reset-failed")]


LIVE = '{"live-restore": true}'


@pytest.mark.parametrize(
    ("unit", "verb", "read", "daemon", "expected"),
    [
        ("docker", "restart", "false", LIVE, ["reload", "restart"]),
        ("docker", "restart", "true", LIVE, ["restart"]),
        ("docker", "restart", "false", "{}", ["restart"]),
        ("docker", "reload", "false", LIVE, ["reload"]),
        ("containerd", "restart", "false", LIVE, ["restart"]),
    ],
)
def test_docker_reads_a_new_live_restore_before_it_stops(
    unit: str, verb: str, read: str, daemon: str, expected: list[str], tmp_path: Path
) -> None:
    """docker reads live-restore at its start and at a reload (moby/moby#30308,
    docs.docker.com/engine/daemon/live-restore); the plan reads it from the file."""
    done = asked(tmp_path, f"{unit}.service", verb, unit, read, daemon)
    assert done == [f"{word} {unit}.service" for word in expected]


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ("containerd.service", ["reload docker.service", "restart containerd.service"]),
        ("docker.socket", ["restart containerd.service"]),
    ],
)
def test_a_docker_that_restarts_with_containerd_reads_it_too(
    needs: str, expected: list[str], tmp_path: Path
) -> None:
    """docker/docker-ce-packaging#508: docker.service of docker 20.10 requires containerd."""
    words = ("containerd.service", "restart", "containerd", "false", LIVE, needs)
    assert asked(tmp_path, *words) == expected
