"""Ubuntu's own driver, taken over to a version that NVIDIA's repository has."""

from __future__ import annotations

import pytest
from deploying import run_deploy
from driver_state import NEWEST, ONLY_DRIVER, driver_packages, loaded

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory
from tests.selection import some

pytestmark = pytest.mark.hosts

OPEN = (
    "nvidia-driver-580-open", "nvidia-dkms-580-open", "nvidia-kernel-source-580-open",
    "nvidia-kernel-common-580", "libnvidia-compute-580", "libnvidia-cfg1-580",
    "libnvidia-decode-580", "nvidia-compute-utils-580", "nvidia-utils-580",
)  # fmt: skip
NAMES = {
    "open": OPEN,
    "server": tuple(name.replace("580", "580-server") for name in OPEN),
}
VERSION = "580.82.09-0ubuntu0.22.04.1"  # NVIDIA's repository never had it
CONTROL = (
    "Package: {name}\\nVersion: {version}\\nArchitecture: amd64\\n"
    "Maintainer: x <x@example.com>\\nDescription: x\\n"
)
BUILD = f"""set -e
mkdir -p /tmp/own/DEBIAN
printf '{CONTROL}' >/tmp/own/DEBIAN/control
dpkg-deb -b /tmp/own /tmp/own.deb >/dev/null
dpkg -i /tmp/own.deb >/dev/null
"""


def install(host: Host, names: tuple[str, ...]) -> None:
    host.run("\n".join(BUILD.format(name=name, version=VERSION) for name in names), timeout=900)


@pytest.mark.parametrize("names", some(NAMES, ["open"]))
def test_it_gets_the_newest_version_of_its_branch(bare_host: HostFactory, names: str) -> None:
    host = bare_host("ubuntu2204")
    install(host, NAMES[names])
    assert set(driver_packages(host).values()) == {"580.82.09"}
    done = run_deploy("gpu_node", [host], **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    there = driver_packages(host)
    there.pop("nvidia-settings", None)  # a dependency of the desktop's driver, of any version
    assert set(there.values()) == {NEWEST["580"]}
    assert loaded(host) == NEWEST["580"]
    again = run_deploy("gpu_node", [host], **ONLY_DRIVER)
    assert again.changes() == {host.name: 0}, again.output
