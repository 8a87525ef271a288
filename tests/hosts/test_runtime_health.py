"""A healthy runtime reports healthy after a run, or its old files are restored."""

from __future__ import annotations

import pytest
from deploying import Outcome, run_deploy

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.extended,
    pytest.mark.claim(
        "After every change a runtime works as before by its own commands, or its old file is "
        "restored.",
        level=3,
    ),
]

DAEMON_JSON, CONFIG_TOML = "/etc/docker/daemon.json", "/etc/containerd/config.toml"
MARK = "\ufeff"
VERSION_3 = "version = 3\n"
CRI = "ctr plugins ls | awk '$2 == \"cri\" { print $NF }'"
# A file that containerd imports only at its start: its parser accepts the main file.
IMPORTING = 'version = 2\nimports = ["/run/late/*.toml"]\n'
LATE = """[Service]
ExecStartPre=/bin/sh -c 'mkdir -p /run/late; rm -f /run/late/*; \
grep -q nvidia /etc/containerd/config.toml && cp /etc/late.toml /run/late/; true'
"""
LOST = (
    'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\ndefault_runtime_name = "lost"\n'
)
DROP_IN = "/etc/systemd/system/containerd.service.d/late.conf"


@pytest.fixture(scope="module")
def host(bare_host: HostFactory) -> Host:
    """docker 20.10, which rejects an empty file and a byte order mark; containerd 1.6."""
    found = bare_host("ubuntu2204")
    found.put(DAEMON_JSON, "")
    found.put(CONFIG_TOML, VERSION_3)
    found.run("systemctl restart containerd")
    return found


@pytest.fixture(scope="module")
def installed(host: Host) -> Outcome:
    done = run_deploy("gpu_node", [host])
    assert done.returncode == 0, done.output
    return done


def docker_serves(host: Host) -> bool:
    return "nvidia" in host.output("docker info --format '{{json .Runtimes}}'")


def test_containerd_uses_the_written_configuration(host: Host, installed: Outcome) -> None:
    """containerd 1.6 reads a file of version 3 as version 2."""
    assert "runtimes.nvidia]" in host.output("containerd config dump")
    assert host.output(CRI).strip() == "ok"


def test_docker_starts_from_an_empty_file_and_keeps_running(host: Host, installed: Outcome) -> None:
    assert docker_serves(host)
    host.put(DAEMON_JSON, MARK + host.get(DAEMON_JSON))
    done = run_deploy("gpu_node", [host])
    assert done.returncode == 0, done.output
    assert "GF437" in done.codes(host.name)
    assert docker_serves(host)
    host.run("systemctl restart docker")


def test_the_old_file_returns_if_a_plugin_does_not_load(host: Host, installed: Outcome) -> None:
    """containerd stays active: only its list of plugins shows the failure."""
    host.put(CONFIG_TOML, IMPORTING)
    host.put("/etc/late.toml", LOST)
    host.put(DROP_IN, LATE)
    host.run("systemctl daemon-reload && systemctl restart containerd")
    assert host.output(CRI).strip() == "ok"
    done = run_deploy("gpu_node", [host])
    assert done.returncode == 1, done.output
    assert "GF432" in done.codes(host.name)
    assert "io.containerd.grpc.v1/cri" in done.output
    assert host.get(CONFIG_TOML) == IMPORTING
    assert host.output("ls /var/lib/gpufleet/runtimes") == ""
    assert host.output(CRI).strip() == "ok"
    host.run(f"rm -r {DROP_IN} /run/late /etc/late.toml && systemctl daemon-reload")


def test_the_old_file_returns_if_containerd_ignores_the_new_one(
    host: Host, installed: Outcome
) -> None:
    deaf = '#!/bin/sh\n/usr/bin/containerd "$@" | grep -v nvidia\n'
    host.put(CONFIG_TOML, VERSION_3)
    host.put("/usr/local/bin/containerd", deaf, 0o755)
    done = run_deploy("gpu_node", [host])
    host.run("rm /usr/local/bin/containerd")
    assert done.returncode == 1, done.output
    assert "GF436" in done.codes(host.name)
    assert host.get(CONFIG_TOML) == VERSION_3
    assert host.output("find /etc/containerd -name '*.gpufleet-new'") == ""


def test_removal_leaves_docker_running(host: Host, installed: Outcome) -> None:
    host.put(DAEMON_JSON, "")
    done = run_deploy("remove", [host])
    assert done.returncode == 0, done.output
    assert host.get(DAEMON_JSON) == "{}\n"
    assert host.output("systemctl is-active docker").strip() == "active"
    assert host.output(CRI).strip() == "ok"
    assert run_deploy("remove", [host]).changes() == {host.name: 0}
