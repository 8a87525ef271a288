"""The driver of hosts at work is changed: canary, roll-back, budget, kills, requests."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from pathlib import Path

import pytest
from deploying import run_deploy
from driver_state import NEWEST, OLD_580, assert_driver, held, loaded
from upgrading import Fleet

from gpufleet_sandbox import Host, Sandbox

pytestmark = pytest.mark.hosts

NEW = NEWEST["580"]
NAMES = ("ubuntu2204", "ubuntu2204-2")
DATA = {
    "toolkit_enabled": False,
    "driver_branch": "580",
    "driver_version": OLD_580,
    "upgrade_soak": 0,
    "upgrade_wait": 600,
    "upgrade_max_failed_in_a_row": 1,
}
BACK = {**DATA, "driver_allow_change": True}
KILLS, SEED = 6, 20261125


@pytest.fixture(scope="module")
def hosts(sandbox: Sandbox) -> list[Host]:
    """Two hosts of one group, with the older driver."""
    sandbox.up([NAMES[0]], copies=2)
    found = [sandbox.host(name) for name in NAMES]
    for host in found:
        host.reset()
    done = run_deploy("gpu_node", found, **DATA)
    assert done.returncode == 0, done.output
    return found


@pytest.fixture
def fleet(hosts: list[Host], tmp_path: Path) -> Fleet:
    return Fleet(hosts, tmp_path, DATA)


@pytest.mark.claim(
    "An upgrade changes hosts one after the other, waits for GPU work, and runs the user's hooks.",
    level=3,
)
def test_hosts_change_one_after_the_other_and_return(fleet: Fleet, hosts: list[Host]) -> None:
    """Work on a GPU is waited for; commands on the controller are run around each host."""
    log = fleet.folder / "commands"
    said = {
        f"upgrade_{word}_command": f"sh -c 'echo {word} {{host}} >>{log}'"
        for word in ("drain", "check", "ready")
    }
    fleet.data = {**DATA, **said}
    busy = hosts[1]
    with busy.fault("gpu-busy"):
        shown = fleet.run("start", "--plan", "--to", NEW)
        assert "waits for GPU work on ubuntu2204-2: train infinity" in shown.stdout
        assert not fleet.events()
        seen: list[str] = []

        def finish() -> None:
            seen.extend((busy.output("systemctl is-active gpu-job"), loaded(busy)))
            busy.set_fault("gpu-busy", False)

        waiting = fleet.at(NAMES[1], "draining", finish)
        done = fleet.run("start", "--to", NEW, "--yes")
        assert done.returncode == 0, done.stdout
        waiting.join()
    assert seen == ["active", OLD_580]
    assert fleet.states() == dict.fromkeys(NAMES, "done")
    events = fleet.events()
    assert events.index((NAMES[0], "done, in service")) < events.index((NAMES[1], "draining"))
    for host in hosts:
        assert_driver(host, NEW)
        assert held(host)
    lines = log.read_text().splitlines()
    assert lines == [f"{word} {name}" for name in NAMES for word in ("drain", "check", "ready")]
    again = fleet.run("start", "--to", NEW, "--yes")
    assert again.returncode == 0, again.stdout
    assert f"left out: {NAMES[0]}: already at {NEW}" in again.stdout
    for shown in (done, again):
        assert f'driver_version = "{NEW}"' in shown.stdout, "the inventory asks for another one"
    kept = run_deploy("gpu_node", hosts, **DATA)
    assert (kept.returncode, kept.changes()) == (0, dict.fromkeys(NAMES, 0)), kept.output
    assert "GF149" in kept.codes(NAMES[0])
    refused = fleet.run("start", "--plan")
    assert f"left out: {NAMES[0]}: GF078" in refused.stdout


@pytest.mark.claim("An upgrade is rolled back without a repository.", level=3)
@pytest.mark.extended
def test_a_run_is_rolled_back_without_a_repository(
    fleet: Fleet, hosts: list[Host], mirror_host: Host
) -> None:
    settled = run_deploy("gpu_node", hosts, **BACK)
    assert settled.returncode == 0, settled.output
    done = fleet.run("start", "--to", NEW, "--yes")
    assert done.returncode == 0, done.stdout
    with mirror_host.fault("404"):
        back = fleet.run("rollback", "--yes")
    assert back.returncode == 0, back.stdout
    for host in hosts:
        assert_driver(host, OLD_580)
        assert held(host)
    settled = run_deploy("gpu_node", hosts, **DATA)
    assert settled.changes() == dict.fromkeys(NAMES, 0), settled.output


@pytest.mark.claim(
    "A canary whose module cannot be built is rolled back; no other host is begun.",
    level=3,
)
@pytest.mark.extended
def test_a_canary_whose_module_is_not_built_is_rolled_back(
    fleet: Fleet, hosts: list[Host], mirror_host: Host
) -> None:
    """The repair uses the packages on the host, because the mirror is gone. The other host is not
    started."""
    canary = hosts[0]

    def repair() -> None:
        canary.set_fault("dkms-failure", False)
        mirror_host.set_fault("404", True)

    canary.set_fault("dkms-failure", True)
    try:
        waiting = fleet.at(NAMES[0], "restoring", repair)
        done = fleet.run("start", "--to", NEW, "--yes")
        waiting.join()
    finally:
        canary.set_fault("dkms-failure", False)
        mirror_host.set_fault("404", False)
    assert done.returncode == 1, done.stdout
    assert fleet.states() == {NAMES[0]: "reverted", NAMES[1]: "passed"}
    assert ": stopped: " in done.stdout
    assert "GF550" in fleet.reason(NAMES[0])
    for host in hosts:
        assert_driver(host, OLD_580)
        assert held(host)
    settled = run_deploy("gpu_node", hosts, **DATA)
    assert settled.changes() == dict.fromkeys(NAMES, 0), settled.output


@pytest.mark.extended
def test_a_host_that_cannot_be_changed_is_not_disturbed(fleet: Fleet, hosts: list[Host]) -> None:
    with hosts[0].fault("gpu-lost"):
        shown = fleet.run("start", "--plan", "--to", NEW)
    assert f"left out: {NAMES[0]}: GF052" in shown.stdout
    unknown = fleet.run("start", "--to", "580.17", "--plan")
    assert (unknown.returncode, "GF111" in unknown.stdout) == (1, True), unknown.stdout
    absent = fleet.run("start", "--to", "580.199.99", "--limit", NAMES[0], "--yes")
    assert absent.returncode == 1, absent.stdout
    assert fleet.events() == [(NAMES[0], "passed")]
    assert_driver(hosts[0], OLD_580)


@pytest.mark.extended
def test_damaged_packages_and_a_broken_build_leave_the_host_behind(
    fleet: Fleet, hosts: list[Host]
) -> None:
    canary = hosts[0]
    damage = "echo x >>$(ls -d /var/lib/gpufleet/upgrade/packages/nvidia-utils*)"
    canary.set_fault("dkms-failure", True)
    try:
        waiting = fleet.at(NAMES[0], "restoring", lambda: canary.run(damage))
        done = fleet.run("start", "--to", NEW, "--yes")
        waiting.join()
    finally:
        canary.set_fault("dkms-failure", False)
    assert done.returncode == 1
    assert fleet.states()[NAMES[0]] == "stuck"
    assert "GF055" in fleet.reason(NAMES[0])
    repaired = run_deploy("gpu_node", hosts, **BACK)
    assert repaired.returncode == 0, repaired.output
    assert_driver(canary, OLD_580)
    again = fleet.run("start", "--to", NEW, "--yes", "--limit", NAMES[0])
    assert again.returncode == 0, again.stdout  # it is taken over, changed and returned
    returned = fleet.run("rollback", "--yes", "--limit", NAMES[0])
    assert returned.returncode == 0, returned.stdout


@pytest.mark.extended
def test_requests_end_a_run_after_what_it_has_begun(fleet: Fleet, hosts: list[Host]) -> None:
    asked = fleet.folder / "asked"
    fleet.data = {
        **DATA,
        "upgrade_check_command": f"sh -c 'until test -e {asked}; do sleep 1; done'",
    }
    refused: list[str] = []

    def interrupt(started: subprocess.Popen[str]) -> None:
        refused.append(fleet.run("start", "--to", NEW, "--yes").stdout)
        started.send_signal(signal.SIGINT)
        asked.touch()

    done = fleet.interrupted("changing", interrupt, "start", "--to", NEW, "--yes")
    assert "GF061" in refused[0]
    assert done.returncode == 130, done.stdout
    assert "paused" in done.stdout
    assert fleet.states() == {NAMES[0]: "done", NAMES[1]: "waiting"}
    other = fleet.run("rollback", "--yes")
    assert "GF062" in other.stdout
    with hosts[1].fault("gpu-busy"):
        done = fleet.interrupted(
            "draining", lambda started: started.terminate(), "start", "--to", NEW, "--yes"
        )
        assert done.returncode == 143, done.stdout
        assert fleet.states() == {NAMES[0]: "done", NAMES[1]: "prepared"}
        ended = fleet.run("abort", "--yes")
        assert ended.returncode == 0, ended.stdout
        assert hosts[1].output("systemctl is-active gpu-job") == "active"
    assert fleet.states() == {NAMES[0]: "done", NAMES[1]: "passed"}
    assert fleet.run("rollback", "--yes").returncode == 0
    assert_driver(hosts[0], OLD_580)


@pytest.mark.extended
def test_a_killed_run_goes_on(fleet: Fleet, hosts: list[Host]) -> None:
    """The controller is killed at random moments. Later runs do not repeat completed steps."""
    moments = random.Random(SEED)
    assert fleet.killed(moments.uniform(1, 3), "start", "--to", NEW, "--yes", events=1)
    for _ in range(KILLS):
        if not fleet.killed(moments.uniform(3, 15), "start", "--to", NEW, "--yes"):
            break
    done = fleet.run("start", "--to", NEW, "--yes")
    assert done.returncode == 0, done.stdout
    assert fleet.states() == dict.fromkeys(NAMES, "done")
    states = [json.loads(host.output("cat /var/lib/gpufleet/upgrade.json")) for host in hosts]
    assert [state["attempts"] for state in states] == [1, 1]
    for host in hosts:
        assert_driver(host, NEW)
        assert held(host)
    new = {**DATA, "driver_version": NEW}
    settled = run_deploy("gpu_node", hosts, **new)
    assert settled.changes() == dict.fromkeys(NAMES, 0), settled.output
