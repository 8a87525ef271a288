"""While DKMS builds, the last line of its log is shown, and the installation is what it was."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest
from deploying import ROOT, deploy_command, run_deploy
from driver_state import NEWEST, ONLY_DRIVER, assert_driver

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [pytest.mark.hosts, pytest.mark.extended]

GO_ON = "/run/go-on"
COMPILER = f"""#!/bin/sh
# a compiler that takes until it may go on
timeout 90 sh -c 'until [ -e {GO_ON} ]; do sleep 0.2; done'
exec /usr/bin/gcc "$@"
"""
COMPILES = ": cc -O1 "  # as make prints it before it runs
SETTINGS = {"driver_branch": "580", **ONLY_DRIVER}


@pytest.fixture
def slow_host(bare_host: HostFactory) -> Iterator[HostFactory]:
    """A bare host whose compiler waits for the test."""
    kinds: list[str] = []

    def find(kind: str) -> Host:
        host = bare_host(kind)
        kinds.append(kind)
        host.run("rm /usr/bin/cc")  # a link to gcc
        host.put("/usr/bin/cc", COMPILER, 0o755)
        return host

    yield find
    for kind in kinds:
        bare_host(kind)


def test_it_is_in_the_live_line_of_a_terminal(slow_host: HostFactory, tmp_path: Path) -> None:
    host = slow_host("ubuntu2204")
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    terminal, other_end = pty.openpty()
    run = subprocess.Popen(
        deploy_command("gpu_node", [host], tmp_path, data=SETTINGS), cwd=ROOT,
        env={**kept, "TERM": "xterm", "COLUMNS": "160", "LINES": "24"},
        stdin=subprocess.DEVNULL, stdout=other_end, stderr=other_end,
    )  # fmt: skip
    os.close(other_end)
    watchdog = Timer(200, run.kill)
    watchdog.start()
    printed = ""
    with open(terminal, errors="replace", newline="") as output:
        try:
            for line in output:
                printed += line
                if COMPILES in line:
                    host.run(f"touch {GO_ON}")
        except OSError:  # Linux reports EIO at the end of a terminal's output
            pass
    status = run.wait()
    watchdog.cancel()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed)
    assert status == 0, plain
    assert re.search(rf"{host.name} +\d+ s  NVIDIA driver: [^\r\n]+{COMPILES}", plain), plain
    assert_driver(host, NEWEST["580"])


@pytest.mark.parametrize(
    ("kind", "branch", "sessions"), [("el7", "550", 10), ("debian12", "580", 2)]
)
def test_it_is_in_the_line_of_a_log_where_sshd_allows_the_session(
    slow_host: HostFactory, kind: str, branch: str, sessions: int
) -> None:
    host = slow_host(kind)
    host.put("/etc/ssh/sshd_config.d/0.conf", f"MaxSessions {sessions}\n")
    assert host.output("sshd -T | grep -i '^maxsessions'") == f"maxsessions {sessions}"
    # a reload returns before sshd has closed its port and opened it again
    host.run("systemctl restart ssh || systemctl restart sshd")
    host.wait_started()
    beats: list[str] = []

    def go_on(line: str) -> None:
        if line.startswith("Running on ") and "Install the driver packages" in line:
            beats.append(line)
            if len(beats) == 2:  # the first may be of a step that has just begun
                host.run(f"touch {GO_ON}")

    done = run_deploy("gpu_node", [host], on_line=go_on, driver_branch=branch, **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    assert (COMPILES in beats[1]) is (sessions > 2), beats
    assert_driver(host, NEWEST[branch])
