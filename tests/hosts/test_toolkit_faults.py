"""Obstacles to the toolkit: reported, users' files untouched, other hosts continue."""

from __future__ import annotations

import pytest
from deploying import Outcome, run_deploy

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

DAEMON_JSON, CONFIG_TOML = "/etc/docker/daemon.json", "/etc/containerd/config.toml"
BROKEN_JSON = '{"log-driver": "json-file",\n "live-restore": true\n "debug": false}\n'
BROKEN_TOML = 'version = 2\n[plugins."io.containerd.grpc.v1.cri"\n'
REFUSED_TOML = """version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = ["a list where containerd wants text"]
"""
PLAIN_JSON = '{"debug": false}\n'
# docker does not start with a configuration that names nvidia
STUBBORN = """[Service]
ExecStartPre=/bin/sh -c '! grep -q nvidia /etc/docker/daemon.json'
"""
DROP_IN = "/etc/systemd/system/docker.service.d/stubborn.conf"
URL = "http://mirror/libnvidia-container/stable/deb/amd64"
QUOTED = "/etc/apt/sources.list.d/quoted.list"


@pytest.fixture(scope="module")
def fleet(bare_host: HostFactory) -> dict[str, Host]:
    hosts = {kind: bare_host(kind) for kind in ("debian12", "ubuntu2404")}
    hosts["debian12"].put(DAEMON_JSON, BROKEN_JSON)
    hosts["ubuntu2404"].put(CONFIG_TOML, BROKEN_TOML)
    return hosts


@pytest.fixture(scope="module")
def first(fleet: dict[str, Host]) -> Outcome:
    return run_deploy("gpu_node", list(fleet.values()))


@pytest.mark.claim("Invalid configuration stays as it is.", level=3)
def test_invalid_files_are_left_as_they_are(fleet: dict[str, Host], first: Outcome) -> None:
    """The hosts fail before any change."""
    assert first.returncode == 1
    assert first.failures() == ["debian12", "ubuntu2404"]
    assert fleet["debian12"].get(DAEMON_JSON) == BROKEN_JSON
    assert fleet["ubuntu2404"].get(CONFIG_TOML) == BROKEN_TOML
    for name in ("debian12", "ubuntu2404"):
        assert "GF401" in first.codes(name)
        assert first.changes()[name] == 0
        assert "nvidia" not in fleet[name].output("dpkg-query -W; ls /etc/modprobe.d /etc/apt/*.d")
        assert fleet[name].run("test -e /var/lib/gpufleet", check=False).returncode == 1
        assert first.report[name]["toolkit"]["before"] is None


# the same repository as apt sees it
OTHERS = {
    "nvidia.list": f"deb {URL.replace('amd64', '$(ARCH)')} /\n",
    "nvidia.sources": f"Types: deb\nURIs: {URL.replace('amd64', '$(ARCH)')}/\nSuites: /\n"
    "Signed-By: /etc/apt/keyrings/toolkit.gpg\n",
    "trusted.list": "deb [trusted=yes signed-by="
    f"/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg] {URL}/ /\n",
    "source.list": f"deb-src {URL} /\n",
}


@pytest.mark.extended
@pytest.mark.parametrize("name", OTHERS)
def test_another_source_of_the_repository_blocks(
    fleet: dict[str, Host], first: Outcome, name: str
) -> None:
    host, path = fleet["debian12"], f"/etc/apt/sources.list.d/{name}"
    host.run(f"rm -f {DAEMON_JSON}")
    host.put(path, OTHERS[name])
    done = run_deploy("gpu_node", [host])
    assert done.returncode == 1
    assert "GF301" in done.codes(host.name)
    assert path in done.output
    assert "nvidia" not in host.output("dpkg-query -W")
    host.run(f"rm {path}")


@pytest.mark.extended
def test_a_source_that_only_apt_can_read_is_no_trap(fleet: dict[str, Host], first: Outcome) -> None:
    """The reader of sources does not know quotes; the trial of the new source asks apt."""
    host = fleet["debian12"]
    host.run(f"rm -f {DAEMON_JSON}")
    host.put(QUOTED, f'deb "{URL}" /\n')
    before = host.output("ls /etc/apt/sources.list.d")
    done = run_deploy("gpu_node", [host], driver_enabled=False)
    assert done.returncode == 1
    assert "GF331" in done.codes(host.name), done.output
    assert "Conflicting values set for option Signed-By" in done.output
    assert host.output("ls /etc/apt/sources.list.d") == before
    assert host.run("apt-get indextargets", check=False).returncode == 0
    host.run(f"rm {QUOTED}")


@pytest.mark.extended
def test_the_old_file_returns_if_a_runtime_does_not_start(
    fleet: dict[str, Host], first: Outcome
) -> None:
    host = fleet["debian12"]
    host.put(DAEMON_JSON, PLAIN_JSON)
    host.put(DROP_IN, STUBBORN)
    host.run("systemctl daemon-reload && systemctl restart docker")
    done = run_deploy("gpu_node", [host])
    assert done.returncode == 1
    assert "GF432" in done.codes(host.name)
    assert host.get(DAEMON_JSON) == PLAIN_JSON
    assert host.output("systemctl is-active docker") == "active"
    host.run(f"rm {DROP_IN} && systemctl daemon-reload")
    done = run_deploy("gpu_node", [host])
    assert done.returncode == 0, done.output
    assert "nvidia" in host.output("docker info --format '{{json .Runtimes}}'")


@pytest.mark.extended
def test_a_file_that_the_parser_rejects_stays(fleet: dict[str, Host], first: Outcome) -> None:
    host = fleet["ubuntu2404"]
    host.put(CONFIG_TOML, REFUSED_TOML)
    done = run_deploy("gpu_node", [host])
    assert done.returncode == 1
    assert "GF431" in done.codes(host.name)
    assert host.get(CONFIG_TOML) == REFUSED_TOML
    assert host.output("systemctl is-active containerd") == "active"
    host.run(f"rm {CONFIG_TOML}")
    done = run_deploy("gpu_node", [host])
    assert done.returncode == 0, done.output
    assert "nvidia" in host.output("containerd config dump")
