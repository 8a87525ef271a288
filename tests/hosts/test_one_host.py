"""Hosts that misbehave: output of the login is ignored, and a host that fails stops alone."""

from __future__ import annotations

import pytest
from deploying import run_deploy

from gpufleet_sandbox import Host
from gpufleet_sandbox.faults import find
from tests.hosts.conftest import HostFactory

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.claim(
        "If one host of six gives any answer or fails in any way, only that host stops, with "
        "a finding. Output of login shells is no answer.",
        level=3,
    ),
]

BANNER = "printf 'reboot required\\nchanged /etc/passwd\\napt-get (17)\\n@@os\\nID=evil\\n'\n"
DEEP = "[" * 3000 + "]" * 3000


def require_sudo_password(host: Host) -> None:
    """Add a user whose sudo needs a password that the inventory lacks."""
    host.run("id asked || useradd -m -s /bin/bash asked")
    host.put("/etc/sudoers.d/asked", "asked ALL=(ALL) ALL\n", 0o440)


@pytest.mark.extended  # takes the minute of the timeout of a silent host
def test_a_host_that_hangs_is_given_up_and_the_others_continue(
    bare_host: HostFactory,
) -> None:
    going, hanging = bare_host("ubuntu2204"), bare_host("debian12")
    frozen = find("frozen", hanging)

    def freeze(line: str) -> None:
        if "Starting operation" in line and "Install the toolkit packages" in line:
            frozen.on(hanging)

    try:
        done = run_deploy(
            "gpu_node", [going, hanging], driver_enabled=False, timeout=900, on_line=freeze
        )
    finally:
        frozen.off(hanging)
    assert done.returncode == 1
    assert done.failures() == [hanging.name]
    assert "GF504" in done.codes(hanging.name)
    assert "no response for" in done.output
    assert "more for this host" in done.output
    assert "nvidia" in going.get("/etc/docker/daemon.json")


def test_output_of_a_login_is_ignored_and_a_refusing_host_stops_alone(
    bare_host: HostFactory,
) -> None:
    chatty, refusing = bare_host("ubuntu2204"), bare_host("debian12")
    own = chatty.get("/root/.bashrc")
    chatty.put("/root/.bashrc", BANNER + own)
    require_sudo_password(refusing)
    done = run_deploy(
        "gpu_node",
        [chatty, refusing],
        per_host={refusing.name: {"ssh_user": "asked", "_sudo": True}},
        driver_enabled=False,
        node_lock_timeout=5,
        toolkit_runtimes=["docker"],
    )
    assert done.failures() == [refusing.name]
    assert done.returncode == 1
    assert done.codes(refusing.name) == {"GF506"}
    assert "NOPASSWD" in done.output
    assert "Traceback" not in done.output
    assert done.changes()[chatty.name] > 0
    assert "nvidia" in chatty.get("/etc/docker/daemon.json")

    chatty.put("/etc/docker/daemon.json", DEEP)
    odd = run_deploy(
        "gpu_node", [chatty, refusing], per_host={refusing.name: {"toolkit_enabled": False}},
        driver_enabled=False,
    )  # fmt: skip
    assert odd.failures() == [chatty.name]
    assert odd.returncode == 1
    assert any(code.startswith("GF") for code in odd.codes(chatty.name))
    assert chatty.get("/etc/docker/daemon.json") == DEEP
