"""`deploys/preflight.py`, `--dry` and wrong settings: everything is reported, nothing changes."""

from __future__ import annotations

import pytest
from deploying import run_deploy
from driver_state import NEWEST, OLD_580, ONLY_DRIVER
from snapshots import differences, snapshot

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

PLAN_KEYS = {"action", "before", "target", "branch", "modules", "packages", "reasons"}


@pytest.fixture(scope="module")
def hosts(bare_host: HostFactory) -> list[Host]:
    """el7 with a driver, debian12 without, and a host without a GPU."""
    el7 = bare_host("el7")
    done = run_deploy("gpu_node", [el7], **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    return [el7, bare_host("debian12"), bare_host("nogpu")]


@pytest.mark.claim("`preflight` and `--dry` change nothing.", level=3)
def test_preflight_reports_everything_and_changes_nothing(hosts: list[Host]) -> None:
    before = [snapshot(host) for host in hosts]
    done = run_deploy("preflight", hosts)
    assert done.returncode == 0, done.output
    for host, state in zip(hosts, before, strict=True):
        assert differences(state, snapshot(host)) == {}, host.name
    el7, debian, nogpu = (done.report[host.name] for host in hosts)
    assert {"GF103", "GF120", "GF121"} <= done.codes("el7")
    assert "GF521" in done.codes("debian12")
    assert done.codes("nogpu") == {"GF501"}
    for part in (el7, debian):
        assert set(part["plan"]["driver"]) >= PLAN_KEYS
    assert el7["plan"]["driver"]["action"] == "none"
    assert debian["plan"]["driver"]["action"] == "install"
    assert debian["plan"]["driver"]["target"] == NEWEST["580"]
    assert nogpu["plan"]["driver"] is None
    for code in ("GF103", "GF521", "GF501"):
        assert code in done.output


@pytest.mark.extended
def test_preflight_fails_where_a_host_is_blocked(hosts: list[Host]) -> None:
    done = run_deploy("preflight", hosts, per_host={"el7": {"driver_branch": "580"}})
    assert done.returncode == 1
    assert done.failures() == ["el7"]
    assert "GF112" in done.codes("el7")


def test_a_dry_run_changes_nothing(hosts: list[Host]) -> None:
    before = [snapshot(host) for host in hosts]
    done = run_deploy("gpu_node", hosts, options=["--dry", "--diff"], **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    for host, state in zip(hosts, before, strict=True):
        assert differences(state, snapshot(host)) == {}, host.name
    assert done.report["debian12"]["changed"] > 3, "what would change is counted"
    assert done.report["el7"]["changed"] == 0
    statuses = [done.report[name]["status"] for name in ("debian12", "el7")]
    assert statuses == ["planned", "converged"]
    assert "Install the driver packages" in done.output
    assert "would debian12: driver: install the driver" in done.output
    assert "+blacklist nouveau" in done.output, "--diff shows what files would hold"


WRONG = {
    "el7": {"driver_brunch": "550", "driver_version": 550.10, "node_lock_timeout": "soon"},
    "debian12": {
        "driver_version": f"{OLD_580}; touch /tmp/owned",
        "driver_repo_url": "http://mirror/$(touch /tmp/owned)",
        "driver_repo_key_fingerprint": 'it\'s "not" one',
    },
    "nogpu": {"driver_branch": "550", "driver_version": OLD_580},
}


@pytest.mark.extended
def test_wrong_settings_of_all_hosts_are_reported_at_once(hosts: list[Host]) -> None:
    before = [snapshot(host) for host in hosts]
    done = run_deploy("gpu_node", hosts, per_host=WRONG, **ONLY_DRIVER)
    assert done.returncode == 1
    assert sorted(done.failures()) == sorted(WRONG)
    assert done.codes("el7") == {"GF201", "GF202"}
    assert done.codes("debian12") == {"GF202"}
    assert done.codes("nogpu") == {"GF203"}
    messages = {
        name: " ".join(f["message"] + f["remedy"] for f in part["findings"])
        for name, part in done.report.items()
    }
    assert "Did you mean driver_branch?" in messages["el7"]
    assert 'in quotes, with every digit, as in "' in messages["el7"]
    for key in WRONG["debian12"]:
        assert key in messages["debian12"]
    for key in WRONG["el7"]:
        assert key in messages["el7"]
    for host, state in zip(hosts, before, strict=True):
        assert differences(state, snapshot(host)) == {}, host.name
        assert host.run("test -e /tmp/owned", check=False).returncode == 1
