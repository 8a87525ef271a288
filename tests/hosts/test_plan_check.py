"""`plan --check`: each host's repositories say what a run will install; the host stays as it is."""

from __future__ import annotations

import re

import pytest
from deploying import run_deploy
from driver_state import NEWEST, OLD_580
from snapshots import differences, snapshot

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory
from tests.selection import some

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.claim(
        "`plan --check` names the packages and versions that the run then installs, and "
        "leaves the host as it is.",
        level=3,
    ),
]

LISTS = (
    "find /var/lib/apt /var/cache/apt /var/cache/yum /var/lib/yum /var/tmp -xdev -type f"
    " 2>/dev/null | sort | xargs -r stat -c '%n %s %Y'"
)
BRANCH = {"el7": "550"}  # of other hosts: 580


def packages(host: Host) -> dict[str, str]:
    """Version by installed package."""
    lines = snapshot(host)["packages"]
    return {name: version for name, version, *_ in map(str.split, lines)}


@pytest.mark.parametrize(
    "kind",
    some(["ubuntu2204", "ubuntu2404", "debian12", "el7", "nvswitch"], ["ubuntu2204", "el7"]),
)
def test_a_checked_plan_is_what_the_run_installs(bare_host: HostFactory, kind: str) -> None:
    host = bare_host(kind)
    data = {"driver_branch": BRANCH.get(kind, "580"), "exporter_enabled": False}
    before, lists, there = snapshot(host), host.output(LISTS), packages(host)
    planned = run_deploy("check", [host], **data)
    assert planned.returncode == 0, planned.output
    assert differences(before, snapshot(host)) == {}
    assert host.output(LISTS) == lists
    assert "GF334" not in planned.codes(host.name)
    plan = planned.report[host.name]["plan"]
    assert {each["title"] for each in plan["downloads"]} >= {"driver", "toolkit"}, planned.report
    assert all(each["bytes"] > 0 for each in plan["downloads"])
    done = run_deploy("gpu_node", [host], **data)
    assert done.returncode == 0, done.output
    now = packages(host)
    came = {name for name, version in now.items() if there.get(name) != version}
    keys = {name for name in came if name.startswith("gpg-pubkey")}
    assert came - keys == {name for each in plan["downloads"] for name in each["packages"]}
    versions = done.report[host.name]["driver"]["after"]
    assert plan["versions"]["driver"]["after"] == versions
    # for a reboot: nouveau has the GPUs; the table may break the line after "not"
    waiting = re.search(r"(\d+) not\b", done.output)
    counted = done.report[host.name]["changed"] + int(waiting[1] if waiting else 0)
    assert counted == len(plan["steps"]), (plan["steps"], done.output)


@pytest.mark.extended
def test_a_change_of_the_driver_is_what_was_planned(
    bare_host: HostFactory, mirror_host: Host
) -> None:
    host = bare_host("ubuntu2204")
    data = {"toolkit_enabled": False, "exporter_enabled": False}
    assert run_deploy("gpu_node", [host], driver_version=OLD_580, **data).returncode == 0
    there = packages(host)
    data |= {"driver_version": NEWEST["580"], "driver_allow_change": True}
    with mirror_host.fault("down"):
        refused = run_deploy("check", [host], **data)
    assert refused.returncode == 1
    (found,) = (each for each in refused.report[host.name]["findings"] if each["code"] == "GF312")
    assert found["message"].startswith("A server does not accept the connection (mirror:80)."), (
        found
    )
    assert "curl -v" in found["remedy"]
    plan = run_deploy("check", [host], **data).report[host.name]["plan"]
    done = run_deploy("gpu_node", [host], **data)
    assert done.returncode == 0, done.output
    now = packages(host)
    came = {name for name, version in now.items() if there.get(name) != version}
    assert came == {name for each in plan["downloads"] for name in each["packages"]}
    assert plan["versions"]["driver"] == done.report[host.name]["driver"]
    assert done.report[host.name]["changed"] == len(plan["steps"]), (plan["steps"], done.output)


def test_links_and_hooks_lead_to_nothing_on_the_host(bare_host: HostFactory) -> None:
    """A source file that is a link, and a program that apt runs after each update."""
    host = bare_host("ubuntu2204")
    name = "cuda-ubuntu2204-x86_64.list"
    host.run(f"echo '# ours' >/srv/{name}; ln -s /srv/{name} /etc/apt/sources.list.d/{name}")
    hook = 'APT::Update::Post-Invoke-Success { "touch /srv/updated"; };\n'
    host.put("/etc/apt/apt.conf.d/50hook", hook)
    done = run_deploy("check", [host])
    assert done.returncode == 0, done.output
    assert done.report[host.name]["plan"]["downloads"], "it was asked"
    assert host.output(f"cat /srv/{name}; ls /srv") == f"# ours\n{name}"


def test_a_folder_that_is_a_link_is_not_asked(bare_host: HostFactory) -> None:
    host = bare_host("debian12")
    host.run("mv /etc/apt/sources.list.d /srv/lists && ln -s /srv/lists /etc/apt/sources.list.d")
    before = host.output("ls /srv/lists")
    done = run_deploy("check", [host])
    assert "GF334" in done.codes(host.name), done.output
    assert "/etc/apt/sources.list.d is a link to a folder" in done.output
    assert host.output("ls /srv/lists; ls /var/tmp | grep gpufleet || :") == before


def test_what_no_repository_has_is_said_before_the_run(bare_host: HostFactory) -> None:
    host = bare_host("debian12")
    before, lists = snapshot(host), host.output(LISTS)
    done = run_deploy("check", [host], driver_version="580.1.99", driver_allow_unknown=True)
    assert done.returncode == 1
    assert "GF313" in done.codes(host.name), done.output
    assert differences(before, snapshot(host)) == {}
    assert host.output(LISTS) == lists


def test_a_host_whose_lock_is_held_is_not_asked(bare_host: HostFactory) -> None:
    host = bare_host("ubuntu2204")
    with host.fault("apt-lock"):
        done = run_deploy("check", [host])
    assert done.returncode == 0, done.output
    assert {"GF305", "GF334"} <= done.codes(host.name)
    assert "the repository is asked in the run" in " ".join(done.output.split())


@pytest.mark.extended
def test_a_wrong_record_is_one_step_of_the_plan_and_of_the_run(bare_host: HostFactory) -> None:
    host = bare_host("ubuntu2204")
    data = {"toolkit_enabled": False, "exporter_enabled": False}
    assert run_deploy("gpu_node", [host], **data).returncode == 0
    assert run_deploy("preflight", [host], **data).report[host.name]["plan"]["steps"] == []
    host.run('sed -i \'s/"held": true/"held": false/\' /var/lib/gpufleet/provenance.json')
    planned = run_deploy("preflight", [host], **data).report[host.name]["plan"]["steps"]
    assert planned == ["driver: record what is installed"]
    done = run_deploy("gpu_node", [host], **data)
    assert done.returncode == 0, done.output
    assert done.report[host.name]["changed"] == len(planned), (done.output, planned)
    assert run_deploy("preflight", [host], **data).report[host.name]["plan"]["steps"] == []
