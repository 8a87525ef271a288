"""`deploys/gpu_node.py`: the driver installed, upgraded, downgraded, held and refused."""

from __future__ import annotations

import json

import pytest
from deploying import run_deploy
from driver_state import (
    CHANGE_DRIVER,
    NEWEST,
    OLD_580,
    ONLY_DRIVER,
    assert_driver,
    driver_packages,
    held,
)
from snapshots import differences, snapshot

from gpufleet_sandbox import Host
from tests import selection
from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

OURS = "/var/lib/gpufleet"  # files of gpufleet itself; no other program reads them
# debian12: test_driver_package_manager; nvswitch: test_green; el7 in `make test`: test_el7
KINDS = ("ubuntu2204", *(["el7"] if selection.extended else []), "nogpu")
KEYS = {
    "kind", "status", "changed", "failed", "driver", "toolkit", "exporter", "runtimes", "releases",
    "needs", "findings", "accepted", "errors", "plan", "seconds",
}  # fmt: skip


@pytest.fixture(scope="module")
def fleet(bare_host: HostFactory) -> dict[str, Host]:
    """A bare host of each kind in this file."""
    return {kind: bare_host(kind) for kind in KINDS}


@pytest.fixture(scope="module")
def before_nogpu(fleet: dict[str, Host]) -> dict[str, list[str]]:
    return snapshot(fleet["nogpu"])


@pytest.mark.claim(
    "Bare machines become GPU nodes: Ubuntu 22.04 and 24.04, Debian 12, EL 7, an NVSwitch "
    "host. A host without a GPU is left alone.",
    level=3,
)
def test_bare_hosts_become_gpu_nodes(
    fleet: dict[str, Host], before_nogpu: dict[str, list[str]]
) -> None:
    done = run_deploy("gpu_node", list(fleet.values()), **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    assert list(done.report) == list(KINDS)
    for name, part in done.report.items():
        assert set(part) == KEYS
        assert part["failed"] is False
        assert part["errors"] == []
        assert part["needs"] == []
        if name == "nogpu":
            continue
        newest = NEWEST["550" if name == "el7" else "580"]
        assert part["changed"] > 5
        assert part["driver"] == {"before": None, "after": newest}
        assert 0 < part["seconds"] < 120
        assert "GF521" not in done.codes(name), "the headers are installed"
        assert part["plan"]["driver"]["action"] == "install"
        assert_driver(fleet[name], newest)
        record = json.loads(fleet[name].get("/var/lib/gpufleet/provenance.json"))
        assert record["driver"]["version"] == newest
        assert set(record["driver"]["packages"]) <= set(driver_packages(fleet[name]))
    assert done.codes("nogpu") == {"GF501"}
    assert done.report["nogpu"]["changed"] == 0
    assert differences(before_nogpu, snapshot(fleet["nogpu"])) == {}
    assert "fabric" not in " ".join(driver_packages(fleet["ubuntu2204"]))


@pytest.mark.claim("A second run changes nothing and says so.", level=3)
def test_a_second_run_changes_nothing(fleet: dict[str, Host]) -> None:
    before = {name: snapshot(host) for name, host in fleet.items()}
    done = run_deploy("gpu_node", list(fleet.values()), **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    assert done.changes() == dict.fromkeys(KINDS, 0)
    assert f" 0 changed, {len(KINDS)} with no changes, 0 failed" in done.output
    for name, host in fleet.items():
        assert differences(before[name], snapshot(host)) == {}, name


@pytest.mark.claim("Unattended upgrades do not move the driver.", level=3)
def test_packages_are_held(fleet: dict[str, Host]) -> None:
    """Unattended and manual upgrades leave the driver alone."""
    host = fleet["ubuntu2204"]
    family = set(driver_packages(host))
    assert family <= held(host)
    pins = host.get("/etc/apt/preferences.d/gpufleet-nvidia-driver")
    assert f"Pin: version {NEWEST['580']}" in pins
    excluded = host.output("apt-config dump Unattended-Upgrade::Package-Blacklist")
    assert "nvidia" in excluded
    if "el7" not in fleet:
        return
    locks = held(fleet["el7"])
    assert len(locks) == len(driver_packages(fleet["el7"]))
    assert all(NEWEST["550"] in lock for lock in locks)


@pytest.mark.claim(
    "An exact version is installed and held. A plain run keeps a driver that works, and says so.",
    level=3,
)
def test_an_exact_version_is_installed_and_held(fleet: dict[str, Host]) -> None:
    """An exact version downgrades the driver if changes are allowed. A later run without a version
    keeps it."""
    host = fleet["ubuntu2204"]
    kept = run_deploy("gpu_node", [host], driver_version=OLD_580, **ONLY_DRIVER)
    assert (kept.returncode, kept.changes()) == (0, {"ubuntu2204": 0}), kept.output
    assert "GF149" in kept.codes("ubuntu2204")
    assert_driver(host, NEWEST["580"])
    done = run_deploy("gpu_node", [host], driver_version=OLD_580, **CHANGE_DRIVER)
    assert done.returncode == 0, done.output
    assert done.report["ubuntu2204"]["driver"] == {"before": NEWEST["580"], "after": OLD_580}
    assert done.report["ubuntu2204"]["plan"]["driver"]["action"] == "downgrade"
    assert_driver(host, OLD_580)
    assert set(driver_packages(host)) <= held(host)
    for command in ("apt-get -y upgrade", "apt-get -y dist-upgrade"):
        simulated = host.output(f"apt-get -q update >/dev/null && {command.replace('-y', '-s')}")
        assert "Inst" not in [
            line.split()[0] for line in simulated.splitlines() if "nvidia" in line
        ]
        host.run(command)
        assert_driver(host, OLD_580)
    host.run(f"apt-mark unhold {' '.join(driver_packages(host))}")
    assert "Inst" not in host.output("apt-get -s dist-upgrade"), "the pin alone is enough"
    again = run_deploy("gpu_node", [host], **ONLY_DRIVER)
    assert again.returncode == 0
    assert again.report["ubuntu2204"]["driver"] == {"before": OLD_580, "after": OLD_580}
    assert_driver(host, OLD_580)
    assert set(driver_packages(host)) <= held(host)
    assert run_deploy("gpu_node", [host], **ONLY_DRIVER).changes() == {"ubuntu2204": 0}


@pytest.mark.claim(
    "Branch 550 changes to 580 on Ubuntu; EL 7 refuses it with the reason. A driver moves "
    "down only for an exact version.",
    level=3,
)
@pytest.mark.extended  # the exact version is a downgrade, refusals are decided by pure functions
def test_a_change_of_branch_and_a_refused_one(fleet: dict[str, Host]) -> None:
    """550 -> 580 replaces the old packages in one transaction; el7 rejects 580."""
    ubuntu, el7 = fleet["ubuntu2204"], fleet["el7"]
    lower = {"ubuntu2204": {"driver_branch": "550"}}
    refused = run_deploy("gpu_node", [ubuntu], per_host=lower, **CHANGE_DRIVER)
    assert refused.returncode == 1
    assert "GF532" in refused.codes("ubuntu2204"), "a branch does not downgrade"
    there = refused.report["ubuntu2204"]["driver"]
    assert there["before"] == there["after"] == OLD_580
    exact = {"ubuntu2204": {"driver_branch": None, "driver_version": NEWEST["550"]}}
    down = run_deploy("gpu_node", [ubuntu], per_host=exact, **CHANGE_DRIVER)
    assert down.returncode == 0, down.output
    assert_driver(ubuntu, NEWEST["550"])
    up = {"ubuntu2204": {"driver_branch": "580"}}
    planned = run_deploy("gpu_node", [ubuntu], per_host=up, options=["--dry"], **CHANGE_DRIVER)
    moves = planned.report["ubuntu2204"]["driver"]
    assert moves == {"before": NEWEST["550"], "after": NEWEST["580"]}, "not a removal"
    before = snapshot(el7)
    lines = int(ubuntu.output("wc -l < /var/log/apt/history.log"))
    done = run_deploy(
        "gpu_node",
        [ubuntu, el7],
        per_host={name: {"driver_branch": "580"} for name in ("ubuntu2204", "el7")},
        **CHANGE_DRIVER,
    )
    assert done.returncode == 1
    assert done.failures() == ["el7"]
    assert "GF112" in done.codes("el7")
    assert "GF112" in done.output
    assert "550.163.01" in done.output
    assert differences(before, snapshot(el7)) == {}
    assert_driver(ubuntu, NEWEST["580"])
    assert not [name for name in driver_packages(ubuntu) if "550" in name]
    assert not [name for name in held(ubuntu) if "550" in name]
    history = ubuntu.output(f"tail -n +{lines + 1} /var/log/apt/history.log")
    transactions = [part for part in history.split("Start-Date") if "Remove:" in part]
    assert len(transactions) == 1
    assert "Install:" in transactions[0]
    assert run_deploy("gpu_node", [ubuntu], **ONLY_DRIVER).changes() == {"ubuntu2204": 0}


@pytest.mark.claim(
    "A version that the repository lacks is refused; the message lists the versions that it has.",
    level=3,
)
@pytest.mark.extended
def test_an_unknown_version_is_refused_with_the_available_ones(fleet: dict[str, Host]) -> None:
    hosts = [fleet["ubuntu2204"], fleet["el7"]]
    before = [snapshot(host, OURS) for host in hosts]
    done = run_deploy(
        "gpu_node",
        hosts,
        per_host={
            "ubuntu2204": {"driver_branch": None, "driver_version": "580.1.1"},
            "el7": {"driver_branch": None, "driver_version": "550.1.1"},
        },
        **CHANGE_DRIVER,
    )
    assert done.returncode == 1
    assert done.failures() == ["ubuntu2204", "el7"]
    for host, state in zip(hosts, before, strict=True):
        assert "GF313" in done.codes(host.name), done.output
        newest = NEWEST["550" if host.name == "el7" else "580"]
        assert newest in done.report[host.name]["errors"][0]
        assert differences(state, snapshot(host, OURS)) == {}
