"""Unreachable or untrusted repositories: a finding with its code, and no change on the host."""

from __future__ import annotations

import pytest
from deploying import run_deploy
from driver_state import NEWEST, ONLY_DRIVER, assert_driver, driver_packages
from snapshots import differences, snapshot

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory
from tests.selection import some

pytestmark = pytest.mark.hosts

OURS = "/var/lib/gpufleet"  # files of gpufleet itself; no other program reads them
FAULTS = {  # code on debian12, code on el7
    "down": ("GF311", "GF311"),
    "404": ("GF311", "GF311"),
    "wrong-signature": ("GF312", "GF319"),  # el7: packages are signed, metadata is not
}


@pytest.fixture(scope="module")
def hosts(bare_host: HostFactory) -> list[Host]:
    return [bare_host("debian12"), bare_host("el7"), bare_host("nogpu")]


@pytest.mark.claim("A mirror that fails changes nothing.", level=3)
@pytest.mark.parametrize("fault", some(FAULTS, ["404"]))
def test_a_mirror_that_fails_changes_nothing(
    hosts: list[Host], mirror_host: Host, fault: str
) -> None:
    """debian12 and el7 need the mirror and fail; nogpu does not, and succeeds."""
    before = [snapshot(host, OURS) for host in hosts]
    with mirror_host.fault(fault):
        done = run_deploy("gpu_node", hosts, **ONLY_DRIVER)
    assert done.returncode == 1
    assert done.failures() == ["debian12", "el7"], done.output
    for name, code in zip(("debian12", "el7"), FAULTS[fault], strict=True):
        assert code in done.codes(name), done.output
    assert done.report["nogpu"]["failed"] is False
    for host, state in zip(hosts, before, strict=True):
        if (host.name, fault) != ("el7", "wrong-signature"):  # there the repository is valid
            assert differences(state, snapshot(host, OURS)) == {}, host.name
    assert driver_packages(hosts[1]) == {}


@pytest.mark.extended
def test_an_expired_key_changes_nothing(hosts: list[Host], mirror_host: Host) -> None:
    """rpm does not check when a key expires; apt does."""
    host = hosts[0]
    before = snapshot(host, OURS)
    with mirror_host.fault("expired-key"):
        done = run_deploy("gpu_node", [host], **ONLY_DRIVER)
    assert done.returncode == 1
    assert "GF312" in done.codes("debian12"), done.output
    assert "EXPKEYSIG" in done.output
    assert differences(before, snapshot(host, OURS)) == {}


UNREADABLE = """Types: deb
URIs: http://mirror/archive/nothing
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/distribution-archive-keyring.gpg
"""
ROGUE = ["rogue-key-after", "rogue-key-first", "rogue-key-inside"]


@pytest.mark.claim("A foreign key beside the right one is not trusted.", level=3)
@pytest.mark.parametrize("fault", some(ROGUE, ["rogue-key-inside"]))
def test_a_rogue_key_beside_the_right_one_is_not_trusted(
    hosts: list[Host], bare_host: HostFactory, mirror_host: Host, fault: str
) -> None:
    """The rogue key signs the whole repository: a host that trusts it installs its packages."""
    hosts = hosts[:2]
    if fault != "rogue-key-inside":
        for host in hosts:
            host.reset()
        hosts.append(bare_host("ubuntu2204"))
    kinds = [host.name for host in hosts]
    before = [snapshot(host, OURS) for host in hosts]
    trusted = hosts[1].output("rpm -qa gpg-pubkey")
    with mirror_host.fault(fault):
        for only in (ONLY_DRIVER, {"driver_enabled": False}):
            done = run_deploy("gpu_node", hosts, **only)
            assert done.returncode == 1
            assert done.failures() == kinds, done.output
            for name in kinds:
                assert "GF310" in done.codes(name), done.output
                assert "GF312" not in done.codes(name), "the run stops at the key"
    for host, state in zip(hosts, before, strict=True):
        assert differences(state, snapshot(host, OURS)) == {}, host.name
    assert hosts[1].output("rpm -qa gpg-pubkey") == trusted


@pytest.mark.claim("A wrong key is not trusted, and other hosts continue.", level=3)
@pytest.mark.extended  # the rogue key has the same code
def test_a_wrong_key_is_not_trusted_and_other_hosts_continue(hosts: list[Host]) -> None:
    debian, el7, _ = hosts
    before = snapshot(debian, OURS)
    done = run_deploy(
        "gpu_node",
        [debian, el7],
        per_host={"debian12": {"driver_repo_key_fingerprint": "0" * 40}},
        **ONLY_DRIVER,
    )
    assert done.returncode == 1
    assert done.failures() == ["debian12"]
    assert "GF310" in done.codes("debian12")
    assert "expected " + "0" * 40 in done.report["debian12"]["errors"][0]
    assert differences(before, snapshot(debian, OURS)) == {}
    assert_driver(el7, NEWEST["550"])
    done = run_deploy("gpu_node", [debian, el7], **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    assert done.report["el7"]["changed"] == 0
    assert_driver(debian, NEWEST["580"])


@pytest.mark.extended
def test_an_unreadable_archive_is_removed_again(hosts: list[Host]) -> None:
    """Otherwise the file would make every apt command on the host fail."""
    host = hosts[0]
    host.reset()
    host.put("/etc/apt/sources.list.d/debian.sources", UNREADABLE)
    before = snapshot(host, OURS)
    done = run_deploy(
        "gpu_node", [host], driver_source="distro", driver_branch="535", **ONLY_DRIVER
    )
    assert done.returncode == 1
    assert "GF312" in done.codes("debian12"), done.output
    assert "gpufleet-components.sources" in done.report["debian12"]["errors"][0]
    assert differences(before, snapshot(host, OURS)) == {}
