"""`gpufleet doctor` on a real host that is broken in one or two places: the verdict names them, and
a healthy host that is busy passes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from containers import import_image
from deploying import run_deploy
from examining import run_gpufleet, write_inventory
from host_breaks import Commands
from host_faults import (
    DATA,
    FAULTS,
    HEALTHY,
    HEALTHY_FAULTS,
    PAIRS,
    SANDBOX_FAULTS,
    XID_PAIRS,
)

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.extended,
    pytest.mark.claim(
        "`doctor` names the cause of a fault on a host, with its consequences under it, and passes "
        "healthy hosts that are busy.",
        level=3,
    ),
]

KIND = "ubuntu2204"


@pytest.fixture(scope="module")
def healthy(bare_host: HostFactory) -> Host:
    host = bare_host(KIND)
    assert run_deploy("gpu_node", [host]).returncode == 0
    import_image(host)
    return host


@contextmanager
def broken(host: Host, commands: Commands) -> Iterator[None]:
    host.run(commands[0])
    try:
        yield
    finally:
        host.run(commands[1])


def judge(host: Host, folder: Path, **data: Any) -> tuple[int, dict[str, Any]]:
    """The exit status of the doctor, and its part of the host. `data`: of the inventory."""
    done = run_gpufleet("doctor", write_inventory(folder, [host], **data), "--json")
    return done.returncode, json.loads(done.stdout)["hosts"][host.name]


def cause_names(part: dict[str, Any]) -> set[str]:
    return {each["check"] for each in part["causes"]}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(healthy: Host, name: str, tmp_path: Path) -> None:
    commands, check = FAULTS[name]
    with broken(healthy, commands):
        status, part = judge(healthy, tmp_path)
    assert (cause_names(part), status > 0) == ({check}, True)


@pytest.mark.parametrize("name", SANDBOX_FAULTS)
def test_a_fault_of_the_machine_is_named(healthy: Host, name: str, tmp_path: Path) -> None:
    with healthy.fault(name):
        status, part = judge(healthy, tmp_path)
    assert (cause_names(part), status > 0) == ({SANDBOX_FAULTS[name]}, True)


@pytest.mark.parametrize("name", DATA)
def test_what_the_inventory_says_is_named(healthy: Host, name: str, tmp_path: Path) -> None:
    data, check = DATA[name]
    status, part = judge(healthy, tmp_path, **data)
    assert (cause_names(part), status > 0) == ({check}, True)


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_of_two_faults_the_causes_are_named(
    healthy: Host, pair: tuple[str, str], tmp_path: Path
) -> None:
    breaks, repairs = zip(*(FAULTS[name][0] for name in pair), strict=True)
    with broken(healthy, (" && ".join(breaks), " && ".join(repairs))):
        _, part = judge(healthy, tmp_path)
    assert cause_names(part) == PAIRS[pair]


@pytest.mark.parametrize("pair", XID_PAIRS)
def test_of_two_xids_the_causes_are_named(healthy: Host, pair: str, tmp_path: Path) -> None:
    commands, checks = XID_PAIRS[pair]
    with broken(healthy, commands):
        _, part = judge(healthy, tmp_path)
    assert cause_names(part) == checks


@pytest.mark.parametrize("name", [*HEALTHY, *HEALTHY_FAULTS])
def test_a_healthy_host_passes(healthy: Host, name: str, tmp_path: Path) -> None:
    busy = name in HEALTHY_FAULTS
    with healthy.fault(name) if busy else broken(healthy, HEALTHY[name]):
        status, part = judge(healthy, tmp_path)
    assert (status, cause_names(part)) == (0, set())


def test_a_host_whose_findings_are_accepted_passes(healthy: Host, tmp_path: Path) -> None:
    with healthy.fault("clock-skew"):
        accepted = {"GF541": "until 2099-01-01"}
        status, part = judge(healthy, tmp_path, accepted_findings=accepted)
    assert (status, cause_names(part)) == (0, set())


def test_a_reboot_into_a_kernel_without_headers_is_named(healthy: Host, tmp_path: Path) -> None:
    """Then into the old kernel, which passes."""
    with healthy.fault("new-kernel"):
        healthy.reboot()
        _, part = judge(healthy, tmp_path)
    assert cause_names(part) == {"chain.headers"}
    healthy.reboot()
    status, part = judge(healthy, tmp_path)
    assert (status, cause_names(part)) == (0, set())
