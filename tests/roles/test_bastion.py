"""A host behind a bastion of the user's ssh_config, for deploys and for checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko
import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.command import StringCommand
from ssh_servers import Server, ssh_server

from gpufleet.run.connection import nodelay_transport
from gpufleet.verify.connection import Connections
from gpufleet.verify.inventory import Target

pytestmark = pytest.mark.claim(
    "A host behind a bastion of the user's ssh_config is reached by deploys and checks.",
    level=2,
)

CONFIG = """
Host bastion
    HostName 127.0.0.1
    Port {bastion}
    User jumper
    IdentityFile {folder}/bastion_key
    UserKnownHostsFile {folder}/known_bastion
Host 127.0.0.1
    ProxyJump bastion
"""


@dataclass(frozen=True, slots=True)
class Site:
    """Two servers, and the data of the host in an inventory."""

    bastion: Server
    host: Server
    data: dict[str, Any]

    def assert_jumped(self) -> None:
        """The bastion got its own user, and the host's connection came from there."""
        assert set(self.bastion.users) == {"jumper"}
        assert set(self.host.users) == {"admin"}
        assert set(self.bastion.forwarded) == {("127.0.0.1", self.host.port)}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ssh_server() as bastion, ssh_server() as host:
        for name, server in {"bastion": bastion, "host": host}.items():
            paramiko.ECDSAKey.generate().write_private_key_file(str(tmp_path / f"{name}_key"))
            (tmp_path / f"known_{name}").write_text(server.known)
        config = tmp_path / "ssh_config"
        config.write_text(CONFIG.format(bastion=bastion.port, folder=tmp_path))
        data = {
            "ssh_hostname": "127.0.0.1",
            "ssh_port": host.port,
            "ssh_user": "admin",
            "ssh_key": str(tmp_path / "host_key"),
            "ssh_known_hosts_file": str(tmp_path / "known_host"),
            "ssh_strict_host_key_checking": "yes",
            "ssh_config_file": str(config),
        }
        yield Site(bastion, host, data)


def test_a_deploy_reaches_the_host(site: Site) -> None:
    own = {"ssh_paramiko_connect_kwargs": {"transport_factory": nodelay_transport}}
    state = State(Inventory(([("gpu-1", site.data | own)], {}), {}), Config())
    host = state.inventory.get_host("gpu-1")
    host.connect(raise_exceptions=True)
    done, output = host.run_shell_command(StringCommand("echo reached"))
    host.disconnect()
    assert done
    assert output.stdout == "reached"
    site.assert_jumped()


def test_the_checks_reach_the_host(site: Site) -> None:
    connections = Connections()
    try:
        probe = connections.open(Target("gpu-1", ("gpu_nodes",), site.data))
        done = probe.host.run("echo reached")
    finally:
        connections.close()
    assert done.stdout == "reached\n", done.stderr
    site.assert_jumped()
