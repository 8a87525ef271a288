"""Faults of hosts at work while their driver is changed, each on a real host."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from deploying import run_deploy
from driver_state import NEWEST, OLD_580, assert_driver, loaded
from upgrading import Fleet, break_unit, repair_unit

from gpufleet_sandbox import Host, Sandbox
from gpufleet_sandbox.waiting import wait_until

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.extended,
    pytest.mark.claim("An upgrade meets faults of hosts.", level=3),
]

NEW = NEWEST["580"]
NAMES = ("ubuntu2204", "ubuntu2204-2")
NAME = NAMES[0]
DATA = {
    "toolkit_enabled": False, "driver_branch": "580", "driver_version": OLD_580,
    "upgrade_soak": 0, "upgrade_wait": 600, "node_reboot_timeout": 60,
}  # fmt: skip
MANAGER = "nvidia-fabricmanager"
START = ("--to", NEW, "--yes")


@pytest.fixture(scope="module")
def hosts(sandbox: Sandbox) -> list[Host]:
    sandbox.up([NAME], copies=2)
    found = [sandbox.host(name) for name in NAMES]
    for host in found:
        host.reset()
    return found


@pytest.fixture
def fleet(hosts: list[Host], tmp_path: Path) -> Fleet:
    """Both hosts, with the older driver and no trace of a run."""
    for host in hosts:
        host.run("rm -rf /var/lib/gpufleet/upgrade /var/lib/gpufleet/upgrade.json")
    done = run_deploy("gpu_node", hosts, driver_allow_change=True, **DATA)
    assert done.returncode == 0, done.output
    return Fleet(hosts, tmp_path, DATA)


@pytest.fixture
def alone(fleet: Fleet) -> Fleet:
    """The first host."""
    return Fleet(fleet.hosts[:1], fleet.folder, DATA)


@pytest.fixture
def host(hosts: list[Host]) -> Host:
    return hosts[0]


@contextmanager
def during(fleet: Fleet, event: str, act: Callable[[], object]) -> Iterator[None]:
    """Act once the first host has this event; that it had is checked at the end."""
    waiting = fleet.at(NAME, event, act)
    yield
    waiting.join(1)
    assert not waiting.is_alive(), fleet.events()


@contextmanager
def amid(host: Host, act: Callable[[], object]) -> Iterator[None]:
    """Act once the host itself has noted that it is changed: its health was noted before."""
    noted = "test -e /var/lib/gpufleet/upgrade/noted"

    def wait() -> None:
        if wait_until(lambda: host.run(noted, check=False).returncode == 0, 300):
            act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    yield
    thread.join(1)
    assert not thread.is_alive()


def changed_back(fleet: Fleet, *codes: str) -> None:
    """The host has its earlier driver and a finding as the reason, and is in service."""
    assert fleet.states() == {NAME: "reverted"}
    assert any(code in fleet.reason(NAME) for code in codes), fleet.reason(NAME)
    assert_driver(fleet.hosts[0], OLD_580)


def test_a_full_disk_refuses_the_host_before_its_drain(alone: Fleet, host: Host) -> None:
    with host.fault("disk-full"):
        done = alone.run("start", *START)
    assert done.returncode == 1, done.stdout
    assert "draining" not in [event for _, event in alone.events()]
    assert_driver(host, OLD_580)


def test_a_disk_that_becomes_full_during_the_change_is_waited_for(alone: Fleet, host: Host) -> None:
    """Its state cannot be written then either: the change is tried again until there is room."""

    def fill() -> None:
        host.set_fault("disk-full", True)
        threading.Timer(20, host.set_fault, ("disk-full", False)).start()

    try:
        with amid(host, fill):
            done = alone.run("start", *START)
    finally:
        host.set_fault("disk-full", False)
    state = alone.states()[NAME]
    assert state in ("done", "reverted"), done.stdout
    assert_driver(host, NEW if state == "done" else OLD_580)
    assert host.output("dpkg --audit") == ""


def test_a_module_in_use_by_the_kernel_is_not_replaced(alone: Fleet, host: Host) -> None:
    with host.fault("module-busy"):
        done = alone.run("start", *START)
        assert done.returncode == 1, done.stdout
        assert loaded(host) == OLD_580
    assert alone.states()[NAME] in ("reverted", "passed", "stuck")
    assert alone.reason(NAME)


def test_a_mirror_that_is_gone_after_the_preparation_is_not_needed(
    alone: Fleet, host: Host, mirror_host: Host
) -> None:
    try:
        with during(alone, "prepared", lambda: mirror_host.set_fault("404", True)):
            done = alone.run("start", *START)
    finally:
        mirror_host.set_fault("404", False)
    assert done.returncode == 0, done.stdout
    assert_driver(host, NEW)


def test_a_gpu_that_is_lost_by_the_change_reverts_the_host(alone: Fleet, host: Host) -> None:
    try:
        with (
            during(alone, "changing", lambda: host.set_fault("gpu-lost", True)),
            during(alone, "restoring", lambda: host.set_fault("gpu-lost", False)),
        ):
            done = alone.run("start", *START)
    finally:
        host.set_fault("gpu-lost", False)
    assert done.returncode == 1, done.stdout
    changed_back(alone, "GF153", "GF054")


def test_a_gpu_that_stays_lost_leaves_the_host_behind(alone: Fleet, host: Host) -> None:
    try:
        with during(alone, "changing", lambda: host.set_fault("gpu-lost", True)):
            done = alone.run("start", *START)
    finally:
        host.set_fault("gpu-lost", False)
    assert done.returncode == 1, done.stdout
    assert alone.states() == {NAME: "stuck"}
    assert loaded(host) == OLD_580


def test_a_host_out_of_reach_for_a_while_is_waited_for(alone: Fleet, host: Host) -> None:
    def away() -> None:
        host.set_fault("unreachable", True)
        threading.Timer(20, host.set_fault, ("unreachable", False)).start()

    with amid(host, away):
        done = alone.run("start", *START)
    assert done.returncode == 0, done.stdout
    assert_driver(host, NEW)


def test_a_host_that_hangs_for_a_while_is_waited_for(alone: Fleet, host: Host) -> None:
    def away() -> None:
        host.set_fault("frozen", True)
        threading.Timer(20, host.set_fault, ("frozen", False)).start()

    with amid(host, away):
        done = alone.run("start", *START)
    assert done.returncode == 0, done.stdout
    assert_driver(host, NEW)


def test_a_slow_boot_is_waited_for(alone: Fleet, host: Host) -> None:
    before = host.boot_id()
    with host.fault("slow-reboot"):
        done = alone.run("start", "--reboot", "--yes")
    assert done.returncode == 0, done.stdout
    assert host.boot_id() not in ("", before)


def test_a_boot_that_takes_longer_than_its_limit_is_waited_for(alone: Fleet, host: Host) -> None:
    """The host is not rebooted again when it is back."""
    before = host.boot_id()
    alone.data = {**DATA, "node_reboot_timeout": 30}
    with host.fault("slow-reboot"):
        host.run("echo 60 >/etc/sim/slow-boot")
        done = alone.run("start", "--reboot", "--yes")
    assert done.returncode == 0, done.stdout
    assert alone.states() == {NAME: "done"}
    assert alone.log().count("Starting operation: Reboot") == 2
    assert alone.log().count(f"GF554 {NAME}") == 1
    assert host.boot_id() not in ("", before)


def test_a_clock_a_day_behind_refuses_the_host_before_its_drain(alone: Fleet, host: Host) -> None:
    """The lists of its repositories are of the future."""
    with host.fault("clock-skew"):
        done = alone.run("start", *START)
    assert done.returncode == 1, done.stdout
    assert alone.states() == {NAME: "passed"}
    assert "draining" not in [event for _, event in alone.events()]
    assert_driver(host, OLD_580)


ROUNDS = 3  # that a run waits, after which it would have gone on


class Alerts:
    """A Prometheus in which an alert fires until `over` is set."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.refusals = 0  # answers with the alert
        alerts = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                over = alerts.over.is_set()
                alerts.refusals += not over
                fires = [] if over else [{"metric": {"alertname": "GpuXid"}}]
                body = json.dumps({"status": "success", "data": {"result": fires}}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


def test_an_alert_in_the_soak_holds_the_next_host(fleet: Fleet, hosts: list[Host]) -> None:
    alerts = Alerts()
    alerts.over.set()
    fleet.data = {**DATA, "upgrade_alerts": alerts.url}
    seen: list[list[tuple[str, str]]] = []

    def fire() -> None:
        alerts.over.clear()
        assert wait_until(lambda: alerts.refusals >= ROUNDS, 300)
        seen.append(fleet.events())
        alerts.over.set()

    try:
        waiting = fleet.at(NAME, "done", fire)
        done = fleet.run("start", *START)
        waiting.join(1)
    finally:
        alerts.server.shutdown()
        alerts.server.server_close()
    assert done.returncode == 0, done.stdout
    [at_alert] = seen
    assert (NAMES[1], "draining") not in at_alert
    for host in hosts:
        assert_driver(host, NEW)


def test_a_fabric_manager_that_fails_reverts_the_host(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.up(["nvswitch"])
    switched = sandbox.host("nvswitch")
    switched.reset()
    data = {**DATA, "driver_branch": "580"}
    done = run_deploy("gpu_node", [switched], **data)
    assert done.returncode == 0, done.output
    fleet = Fleet([switched], tmp_path, data)
    begins = fleet.at("nvswitch", "changing", lambda: break_unit(switched, MANAGER))
    failed = fleet.at("nvswitch", "restoring", lambda: repair_unit(switched, MANAGER))
    try:
        done = fleet.run("start", *START)
        begins.join(1)
        failed.join(1)
    finally:
        repair_unit(switched, MANAGER)
    assert done.returncode == 1, done.stdout
    assert fleet.states() == {"nvswitch": "reverted"}
    assert switched.output(f"systemctl is-active {MANAGER}") == "active"
    assert loaded(switched) == OLD_580
