"""The driver of hosts at work is changed: canary, roll-back, budget, kills, requests."""

from __future__ import annotations

import random
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

        waiting = fleet.at(NAMES[1], "drain began", finish)
        done = fleet.run("start", "--to", NEW, "--yes")
        assert done.returncode == 0, done.stdout
        waiting.join()
    assert seen == ["active", OLD_580]
    assert fleet.states() == dict.fromkeys(NAMES, "done")
    events = fleet.events()
    assert events.index((NAMES[0], "returned")) < events.index((NAMES[1], "drain began"))
    for host in hosts:
        assert_driver(host, NEW)
        assert held(host)
    lines = log.read_text().splitlines()
    assert lines == [f"{word} {name}" for name in NAMES for word in ("drain", "check", "ready")]
    again = fleet.run("start", "--to", NEW, "--yes")
    assert again.returncode == 0, again.stdout
    assert f"left out: {NAMES[0]}: already at {NEW}" in again.stdout


@pytest.mark.extended
def test_a_run_is_rolled_back_without_a_repository(
    fleet: Fleet, hosts: list[Host], mirror_host: Host
) -> None:
    settled = run_deploy("gpu_node", hosts, **DATA)
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


@pytest.mark.extended
def test_a_canary_whose_module_is_not_built_is_rolled_back(
    fleet: Fleet, hosts: list[Host], mirror_host: Host
) -> None:
    """The mirror is gone by then: the packages come from the host. The other host is not begun."""
    canary = hosts[0]

    def repair() -> None:
        canary.set_fault("dkms-failure", False)
        mirror_host.set_fault("404", True)

    canary.set_fault("dkms-failure", True)
    try:
        waiting = fleet.at(NAMES[0], "change failed", repair)
        done = fleet.run("start", "--to", NEW, "--yes")
        waiting.join()
    finally:
        canary.set_fault("dkms-failure", False)
        mirror_host.set_fault("404", False)
    assert done.returncode == 1, done.stdout
    assert fleet.states() == {NAMES[0]: "reverted", NAMES[1]: "waiting"}
    status = fleet.status()
    assert status["state"] == "stopped"
    assert "GF550" in status["hosts"][0]["reason"]
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
    absent = fleet.run("start", "--to", "580.1.1", "--limit", NAMES[0], "--yes")
    assert absent.returncode == 1, absent.stdout
    assert fleet.events() == [
        ("", "begun"), (NAMES[0], "refused"), ("", "finished")
    ]  # fmt: skip
    assert_driver(hosts[0], OLD_580)


@pytest.mark.extended
def test_damaged_packages_and_a_broken_build_leave_the_host_behind(
    fleet: Fleet, hosts: list[Host]
) -> None:
    canary = hosts[0]
    damage = "echo x >>$(ls -d /var/lib/gpufleet/upgrade/packages/nvidia-utils*)"
    canary.set_fault("dkms-failure", True)
    try:
        waiting = fleet.at(NAMES[0], "change failed", lambda: canary.run(damage))
        done = fleet.run("start", "--to", NEW, "--yes")
        waiting.join()
    finally:
        canary.set_fault("dkms-failure", False)
    assert done.returncode == 1
    assert fleet.states()[NAMES[0]] == "stuck"
    assert "GF056" in fleet.status()["hosts"][0]["reason"]
    repaired = run_deploy("gpu_node", hosts, **DATA)
    assert repaired.returncode == 0, repaired.output
    assert_driver(canary, OLD_580)
    canary.run("rm /var/lib/gpufleet/upgrade/state")


@pytest.mark.extended
def test_requests_end_a_run_after_what_it_has_begun(fleet: Fleet, hosts: list[Host]) -> None:
    asked = fleet.folder / "asked"
    fleet.data = {
        **DATA,
        "upgrade_check_command": f"sh -c 'until test -e {asked}; do sleep 1; done'",
    }
    waiting = fleet.at(NAMES[0], "change began", lambda: (fleet.run("pause"), asked.touch()))
    done = fleet.run("start", "--to", NEW, "--yes")
    waiting.join()
    assert done.returncode == 0, done.stdout
    assert fleet.status()["state"] == "paused"
    assert fleet.states() == {NAMES[0]: "done", NAMES[1]: "waiting"}
    other = fleet.run("start", "--to", NEW, "--yes")
    assert "GF062" in other.stdout
    with hosts[1].fault("gpu-busy"):
        waiting = fleet.at(NAMES[1], "drain began", lambda: fleet.run("abort"))
        done = fleet.run("resume")
        waiting.join()
        assert hosts[1].output("systemctl is-active gpu-job") == "active"
    assert fleet.states() == {NAMES[0]: "done", NAMES[1]: "passed over"}
    assert fleet.status()["state"] == "aborted"
    assert fleet.run("rollback", "--yes").returncode == 0
    assert_driver(hosts[0], OLD_580)


@pytest.mark.extended
def test_a_killed_run_goes_on(fleet: Fleet, hosts: list[Host]) -> None:
    """SIGKILL of the controller at random moments; what was done is not done again."""
    moments = random.Random(SEED)
    assert fleet.killed(moments.uniform(1, 3), "start", "--to", NEW, "--yes", events=1)
    for _ in range(KILLS):
        if not fleet.killed(moments.uniform(1, 12), "resume"):
            break
    done = fleet.run("resume")
    assert done.returncode == 0, done.stdout
    assert fleet.states() == dict.fromkeys(NAMES, "done")
    changed = [host for host, event in fleet.events() if event == "changed"]
    assert sorted(changed) == sorted(NAMES)
    for host in hosts:
        assert_driver(host, NEW)
        assert held(host)
    new = {**DATA, "driver_version": NEW}
    settled = run_deploy("gpu_node", hosts, **new)
    assert settled.changes() == dict.fromkeys(NAMES, 0), settled.output
