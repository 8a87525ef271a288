"""Package managers that are locked, interrupted or out of space, and builds that fail."""

from __future__ import annotations

import pytest
from deploying import run_deploy
from driver_state import CHANGE_DRIVER, NEWEST, ONLY_DRIVER, assert_driver, driver_packages
from snapshots import differences, snapshot

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

OURS = "/var/lib/gpufleet"
REPOSITORY = ("cuda", "repos.d", "RPM-GPG-KEY-NVIDIA")  # parts of its paths
LOCKS = {"debian12": "apt-lock", "el7": "yum-lock"}


@pytest.fixture(scope="module")
def debian12(bare_host: HostFactory) -> Host:
    return bare_host("debian12")


@pytest.fixture(scope="module")
def el7(bare_host: HostFactory) -> Host:
    return bare_host("el7")


@pytest.fixture(scope="module")
def hosts(debian12: Host, el7: Host) -> list[Host]:
    """Two hosts, bare until a test installs: a refused run changes nothing."""
    return [debian12, el7]


@pytest.mark.extended
def test_a_lock_that_is_not_released(hosts: list[Host]) -> None:
    before = [snapshot(host, OURS) for host in hosts]
    for host in hosts:
        host.set_fault(LOCKS[host.name], True)
    try:
        done = run_deploy("gpu_node", hosts, node_lock_timeout=4, **ONLY_DRIVER)
    finally:
        for host in hosts:
            host.set_fault(LOCKS[host.name], False)
    assert done.returncode == 1
    for host, state in zip(hosts, before, strict=True):
        found = done.codes(host.name)
        assert ("GF308" in found, "GF305" in found) == (True, False), done.output
        assert differences(state, snapshot(host, OURS)) == {}


@pytest.mark.extended
def test_an_interrupted_dpkg_of_the_user_is_refused(hosts: list[Host]) -> None:
    host = hosts[0]
    with host.fault("dpkg-interrupted"):
        before = snapshot(host, OURS)
        done = run_deploy("gpu_node", [host], **ONLY_DRIVER)
        after = snapshot(host, OURS)
    assert done.returncode == 1
    assert "GF306" in done.codes("debian12"), done.output
    assert done.report["debian12"]["errors"] == []
    assert differences(before, after) == {}


@pytest.mark.extended
def test_a_full_disk(hosts: list[Host]) -> None:
    before = [snapshot(host, OURS) for host in hosts]
    for host in hosts:
        host.set_fault("disk-full", True)
    try:
        done = run_deploy("gpu_node", hosts, **ONLY_DRIVER)
    finally:
        for host in hosts:
            host.set_fault("disk-full", False)
    assert done.returncode == 1
    for host, state in zip(hosts, before, strict=True):
        assert "GF540" in done.codes(host.name), done.output
        assert differences(state, snapshot(host, OURS)) == {}


@pytest.mark.extended
def test_no_headers_anywhere(hosts: list[Host]) -> None:
    """Only the repository is added: no package and no other file changes."""
    before = [snapshot(host, OURS, *REPOSITORY) for host in hosts]
    for host in hosts:
        host.set_fault("missing-headers", True)
    try:
        done = run_deploy("gpu_node", hosts, **ONLY_DRIVER)
    finally:
        for host in hosts:
            host.set_fault("missing-headers", False)
    assert done.returncode == 1
    for host, state in zip(hosts, before, strict=True):
        rpm = host.kind.is_rpm
        missing, name = ("GF332", "kernel-devel") if rpm else ("GF323", host.kind.kernel)
        assert {"GF521", missing} <= done.codes(host.name), done.output
        assert name in done.report[host.name]["errors"][0]
        assert driver_packages(host) == {}
        assert differences(state, snapshot(host, OURS, *REPOSITORY)) == {}


@pytest.mark.claim(
    "A failed DKMS build is an error, and the next run repairs it.",
    level=3,
)
@pytest.mark.extended
@pytest.mark.parametrize("kind", LOCKS)
def test_a_failed_build_is_an_error_and_the_next_run_converges(
    kind: str, request: pytest.FixtureRequest
) -> None:
    """apt fails with DKMS, rpm reports `Complete!`: both give the same finding."""
    host = request.getfixturevalue(kind)
    with host.fault("dkms-failure"):
        for _ in range(2):
            done = run_deploy("gpu_node", [host], **ONLY_DRIVER)
            assert done.returncode == 1
            assert "GF550" in done.codes(kind), done.output
            assert "make.log" in " ".join(done.report[kind]["errors"])
    done = run_deploy("gpu_node", [host], **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    assert done.report[kind]["plan"]["driver"]["action"] == "repair"
    assert_driver(host, NEWEST["550" if kind == "el7" else "580"])
    assert run_deploy("gpu_node", [host], **ONLY_DRIVER).changes() == {kind: 0}


@pytest.mark.claim(
    "A run waits for the package manager's lock, with progress.",
    level=3,
)
def test_a_run_waits_for_a_lock_with_progress(debian12: Host) -> None:
    """Continues with the hosts above: a change of version waits for another process."""
    host = debian12

    def release(line: str) -> None:
        if "waiting for" in line:
            host.set_fault("apt-lock", False)

    settings = {
        "per_host": {"debian12": {"driver_branch": None, "driver_version": NEWEST["550"]}},
        **CHANGE_DRIVER,
    }
    with host.fault("apt-lock"):
        done = run_deploy("gpu_node", [host], node_lock_timeout=60, on_line=release, **settings)
    assert done.returncode == 0, done.output
    assert "waiting for python3" in done.output
    assert "of 60 s" in done.output
    assert_driver(host, NEWEST["550"])


@pytest.mark.extended
def test_an_interrupted_installation_of_ours_is_finished(hosts: list[Host]) -> None:
    """The state after a power cut between unpacking and configuring."""
    host = hosts[0]
    names = " ".join(driver_packages(host))
    host.run(f"apt-mark unhold {names} && cd /tmp && apt-get -q download {names}")
    host.run("dpkg --unpack /tmp/*nvidia*.deb && rm /tmp/*.deb", check=False)
    assert "iU" in host.output("dpkg-query -W -f '${db:Status-Abbrev}' '*nvidia*'")
    settings = {
        "per_host": {"debian12": {"driver_branch": None, "driver_version": NEWEST["550"]}},
        **ONLY_DRIVER,
    }
    assert "GF307" in run_deploy("preflight", [host], **settings).codes("debian12")
    done = run_deploy("gpu_node", [host], **settings)
    assert done.returncode == 0, done.output
    assert "GF307" not in done.codes("debian12"), "the run put it right"
    assert_driver(host, NEWEST["550"])
    assert run_deploy("gpu_node", [host], **settings).changes() == {"debian12": 0}
