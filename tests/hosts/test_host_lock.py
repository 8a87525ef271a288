"""Two runs on one host: the second waits or stops; the lock ends with its run."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from deploying import ROOT, deploy_command, run_deploy
from driver_state import NEWEST, ONLY_DRIVER, assert_driver

from gpufleet_sandbox import Host
from gpufleet_sandbox.waiting import wait_until
from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

LOCK = "/run/gpufleet.lock"
FREE = f"flock -n {LOCK} echo free || test $? = 1"
SLOW = """#!/bin/sh
[ ! -e /run/begun ] || exec /usr/bin/apt-mark "$@"
touch /run/begun
while [ ! -e /run/go ]; do sleep 0.1; done
/usr/bin/apt-mark "$@"
echo $? >/run/ended
"""
AS_USER = {"ssh_user": "ops", "_sudo": True}
FIRST_CHANGES = 3  # operations of the driver role that precede the first change


def add_user(host: Host) -> None:
    """Add a user with passwordless sudo."""
    host.run("id ops || useradd -m -s /bin/bash ops")
    host.put("/etc/sudoers.d/ops", "ops ALL=(ALL) NOPASSWD: ALL\n", 0o440)


def start_run(host: Host, folder: Path, data: Mapping[str, Any]) -> subprocess.Popen[str]:
    """Start a run of the driver role."""
    command = deploy_command("gpu_node", [host], folder, {host.name: data}, ONLY_DRIVER)
    return subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip


@contextmanager
def mid_run(host: Host, folder: Path, data: Mapping[str, Any]) -> Iterator[subprocess.Popen[str]]:
    """A run while it changes the host."""
    with start_run(host, folder, data) as process:
        assert process.stdout
        operations = 0
        for line in process.stdout:
            operations += "Starting operation" in line
            if operations > FIRST_CHANGES:
                break
        yield process


@pytest.mark.claim(
    "Of two runs on one host, one changes it; the other waits or stops, and names the first.",
    level=3,
)
def test_a_second_run_stops_or_waits_and_names_the_first(
    bare_host: HostFactory, tmp_path: Path
) -> None:
    host = bare_host("ubuntu2204")
    host.put("/usr/local/bin/apt-mark", SLOW, 0o755)  # the first run stays at its step until then
    other = {"per_host": {host.name: {"driver_branch": "580"}}, **ONLY_DRIVER}
    waiting = folder(tmp_path, "waiting")
    with (
        mid_run(host, folder(tmp_path, "first"), {"driver_branch": "550"}) as first,
        start_run(host, waiting, {"driver_branch": "580", "driver_allow_change": True}) as second,
    ):
        refused = run_deploy("gpu_node", [host], node_lock_timeout=0, **other)
        name = f"process {first.pid}, since 20"
        said = f"waiting for another run of gpufleet: root@{platform.node()}, {name}"
        assert second.stdout
        before = list(takewhile(lambda line: said not in line, second.stdout))
        assert second.poll() is None, "".join(before)  # it has said so, and waits
        host.run("touch /run/go")
        output, _ = first.communicate(timeout=900)
        assert first.returncode == 0, output
        waited, _ = second.communicate(timeout=900)
        assert second.returncode == 0, waited
    assert refused.returncode == 1
    assert "GF508" in refused.codes(host.name)
    assert name in refused.output
    assert_driver(host, NEWEST["580"])


def folder(parent: Path, name: str) -> Path:
    made = parent / name
    made.mkdir()
    return made


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        pytest.param("el7", AS_USER, marks=pytest.mark.extended),
        pytest.param("el7", {}, marks=pytest.mark.extended),
        pytest.param("debian12", AS_USER, marks=pytest.mark.extended),
        pytest.param("debian12", {}, marks=pytest.mark.extended),
    ],
)
def test_the_lock_ends_with_a_killed_run(
    bare_host: HostFactory, tmp_path: Path, kind: str, how: dict[str, Any]
) -> None:
    host = bare_host(kind)
    add_user(host)
    with mid_run(host, tmp_path, how) as process:
        assert host.output(FREE) == ""
        os.killpg(process.pid, signal.SIGKILL)
        assert wait_until(lambda: host.output(FREE), 10) == "free"


@pytest.mark.extended
def test_the_next_run_waits_for_the_step_of_a_killed_run(
    bare_host: HostFactory, tmp_path: Path
) -> None:
    """The step continues on the host: another run would change the same things concurrently."""
    host = bare_host("ubuntu2204")
    host.put("/usr/local/bin/apt-mark", SLOW, 0o755)  # only the step that holds packages runs it
    with start_run(host, folder(tmp_path, "first"), {}) as first:
        assert wait_until(lambda: host.run("test -e /run/begun", check=False).returncode == 0, 120)
        os.killpg(first.pid, signal.SIGKILL)
    assert wait_until(lambda: host.output(FREE), 10) == "free"
    refused = run_deploy("gpu_node", [host], node_lock_timeout=0, **ONLY_DRIVER)
    assert refused.returncode == 1
    assert "GF508" in refused.codes(host.name), refused.output
    assert f"process {first.pid}, since 20" in refused.output

    def end(line: str) -> None:
        if "waiting for another run of gpufleet" in line:
            host.run("touch /run/go")

    done = run_deploy("gpu_node", [host], on_line=end, **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    assert host.output("cat /run/ended") == "0"
    assert_driver(host, NEWEST["580"])


@pytest.mark.extended
@pytest.mark.parametrize("how", [AS_USER, {}], ids=["sudo", "root"])
@pytest.mark.parametrize("kind", ["el7", "debian12"])
def test_a_lost_connection_ends_the_lock_and_is_reported(
    bare_host: HostFactory, tmp_path: Path, kind: str, how: dict[str, Any]
) -> None:
    host = bare_host(kind)
    add_user(host)
    with mid_run(host, tmp_path, how) as process:
        host.run("pkill -KILL -f '[s]shd: .*@notty'")
        assert wait_until(lambda: host.output(FREE), 10) == "free"
        output, _ = process.communicate(timeout=900)
    assert process.returncode == 1
    assert "GF504" in output
    assert "Connection lost in the step" in output
    assert "Traceback" not in output
