"""`deploys/remove.py` after failed runs: the host is bare again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deploying import run_deploy
from driver_state import ONLY_DRIVER
from exporting import IMAGE
from snapshots import differences, snapshot

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.claim(
        "A removal covers installations that failed or were killed.",
        level=3,
    ),
]

LEFT = ("/boot/initr", "/etc/dnf/plugins/versionlock.list")
DROP_IN = "/etc/systemd/system/docker.service.d/refuse.conf"
REFUSE = """[Service]
ExecStartPre=/bin/sh -c "! grep -q nvidia /etc/docker/daemon.json"
"""
NO_PROGRAM = f"tar -c -T /dev/null | docker import --change 'ENTRYPOINT [\"/none\"]' - {IMAGE}"
SOURCES = "/etc/apt/sources.list.d"
# a package of the administrator; its removal deletes its data
DEB = """
mkdir -p /root/db/DEBIAN /root/db/var/lib/customers && cd /root
printf 'Package: customers-db\nVersion: 1\nArchitecture: all\n' >db/DEBIAN/control
printf 'Maintainer: a <a@example.com>\nDescription: data\n' >>db/DEBIAN/control
printf '#!/bin/sh\nrm -rf /var/lib/customers\n' >db/DEBIAN/postrm
chmod 755 db/DEBIAN/postrm
dpkg-deb -b db db.deb && dpkg -i db.deb && rm -r db db.deb
"""
RPM = """
mkdir -p /root/db && cd /root/db
printf 'Name: customers-db\nVersion: 1\nRelease: 1\nSummary: data\nLicense: none\n' >db.spec
printf 'BuildArch: noarch\n%%description\nNone.\n%%postun\nrm -rf /var/lib/customers\n' >>db.spec
printf '%%files\n' >>db.spec
rpmbuild --quiet -bb --define '_rpmdir /root/db' db.spec
rpm -U --force-debian noarch/customers-db-1-1.noarch.rpm
rm -r /root/db
"""
DATA = "/var/lib/customers/data"


def assert_bare(host: Host, before: dict[str, list[str]]) -> None:
    assert differences(before, snapshot(host, *LEFT)) == {}
    host.run("test ! -e /var/lib/gpufleet")


def remove(host: Host) -> dict[str, dict[str, str | None]]:
    """Remove, which must succeed; driver and toolkit in the report."""
    done = run_deploy("remove", [host])
    assert done.returncode == 0, done.output
    part = done.report[host.name]
    assert part["status"] == "changed"
    return {role: part[role] for role in ("driver", "toolkit")}


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["debian12", "el7", "ubuntu2204"])
def test_a_driver_whose_build_failed_is_removed(bare_host: HostFactory, kind: str) -> None:
    host = bare_host(kind)
    before = snapshot(host, *LEFT)
    with host.fault("dkms-failure"):
        done = run_deploy("gpu_node", [host], **ONLY_DRIVER)
        assert done.returncode == 1
        assert "GF550" in done.codes(kind), done.output
    there = remove(host)["driver"]
    assert there["before"]
    assert there["after"] is None
    assert_bare(host, before)


@pytest.mark.claim("Packages that the user installed between two runs stay.", level=3)
@pytest.mark.extended
@pytest.mark.parametrize("kind", ["debian12", "el7"])
def test_packages_installed_by_the_user_meanwhile_stay(bare_host: HostFactory, kind: str) -> None:
    """Installed between a failed run and the next one, which converges."""
    host = bare_host(kind)
    before = snapshot(host, *LEFT)
    with host.fault("dkms-failure"):
        assert run_deploy("gpu_node", [host], **ONLY_DRIVER).returncode == 1
    host.run("test -e /var/lib/gpufleet/driver.before.begun")
    host.run(
        f"{RPM if host.kind.is_rpm else DEB}\nmkdir -p /var/lib/customers && echo precious >{DATA}"
    )
    done = run_deploy("gpu_node", [host], **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    record = json.loads(host.get("/var/lib/gpufleet/provenance.json"))["driver"]
    assert "customers-db" not in record["added"]
    assert set(record["packages"]) <= set(record["added"])
    remove(host)
    assert host.get(DATA) == "precious\n"
    left = differences(before, snapshot(host, *LEFT))
    assert set(left) == {"packages"}, left
    assert [line.split()[1] for line in left["packages"]] == ["customers-db"]
    host.run("test ! -e /var/lib/gpufleet")


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["debian12", "el7"])
def test_a_toolkit_that_breaks_docker_is_removed(bare_host: HostFactory, kind: str) -> None:
    host = bare_host(kind)
    host.run(f"mkdir -p {Path(DROP_IN).parent}")
    host.put(DROP_IN, REFUSE)
    host.run("systemctl daemon-reload")
    before = snapshot(host, *LEFT)
    done = run_deploy("gpu_node", [host])
    assert done.returncode == 1
    assert "GF432" in done.codes(kind), done.output
    there = remove(host)["toolkit"]
    assert there == {"before": "1.20.1", "after": None}
    assert_bare(host, before)


@pytest.mark.extended
@pytest.mark.parametrize("mode", ["docker", "systemd"])
def test_an_exporter_that_does_not_start_is_removed(bare_host: HostFactory, mode: str) -> None:
    """The user's image stays; from packages, a drop-in of the user keeps the unit from starting."""
    host = bare_host("ubuntu2204")
    host.run(NO_PROGRAM)
    folder = "/etc/systemd/system/nvidia-dcgm-exporter.service.d"
    host.run(f"mkdir -p {folder}")
    host.put(f"{folder}/refuse.conf", "[Service]\nExecStartPre=/bin/false\n")
    before = snapshot(host, *LEFT)
    done = run_deploy("gpu_node", [host], exporter_enabled=True, exporter_mode=mode)
    assert done.returncode == 1
    assert "GF588" in done.codes(host.name), done.output
    done = run_deploy("remove", [host])
    assert done.returncode == 0, done.output
    assert "GF572" in done.codes(host.name)
    assert done.report[host.name]["exporter"]["after"] is None
    assert_bare(host, before)
    host.run(f"docker image inspect {IMAGE}")


@pytest.mark.extended
def test_packages_removed_by_hand_do_not_block_removal(bare_host: HostFactory) -> None:
    host = bare_host("ubuntu2404")
    done = run_deploy("gpu_node", [host])
    assert done.returncode == 0, done.output
    host.run("apt-get purge -y -q --allow-change-held-packages '*nvidia*'")
    host.run(
        f"rm {SOURCES}/cuda-*.list {SOURCES}/nvidia-container-toolkit.list && apt-get update -q"
    )
    assert remove(host)["driver"] == {"before": None, "after": None}
    host.run("test ! -e /var/lib/gpufleet")
    assert run_deploy("remove", [host]).codes(host.name) == {"GF560"}
