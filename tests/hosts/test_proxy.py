"""Hosts that reach the repositories only through the package manager's proxy."""

from __future__ import annotations

import pytest
from deploying import run_deploy

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory
from tests.selection import some

pytestmark = pytest.mark.hosts

# the name resolves nowhere: a proxy alone knows it, and the mirror answers as one
ADDRESS = "http://repo.invalid"
DATA = {"driver_enabled": False, "toolkit_repo_url": f"{ADDRESS}/libnvidia-container"}
APT = f'Acquire::http::Proxy::{ADDRESS.removeprefix("http://")} "http://mirror";\n'


def through_proxy(host: Host) -> None:
    if host.kind.is_rpm:  # of yum, and of the dnf that imitates it
        for path in ("/etc/yum.conf", "/etc/dnf/dnf.conf"):
            host.run(f"test ! -e {path} || sed -i '/^.main./a proxy=http://mirror:80' {path}")
    else:
        host.put("/etc/apt/apt.conf.d/95proxy", APT)


@pytest.mark.parametrize("kind", some(["debian12", "el7"], ["debian12"]))
def test_the_key_comes_by_the_package_manager_s_way(bare_host: HostFactory, kind: str) -> None:
    host = bare_host(kind)
    without = run_deploy("gpu_node", [host], **DATA)
    assert without.returncode == 1
    assert "GF311" in without.codes(host.name), without.output
    through_proxy(host)
    done = run_deploy("gpu_node", [host], **DATA)
    assert done.returncode == 0, done.output
    assert "CLI version" in host.output("nvidia-ctk --version")
    again = run_deploy("gpu_node", [host], **DATA)
    assert again.changes() == {host.name: 0}, again.output
