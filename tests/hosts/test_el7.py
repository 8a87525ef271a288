"""RHEL/CentOS 7: changes in one transaction, and repositories that are offline."""

from __future__ import annotations

import pytest
from deploying import run_deploy
from snapshots import differences, snapshot

from gpufleet.core.openpgp import primary_fingerprints
from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

NEW, OLD = "550.163.01", "550.144.03"
ONLY_DRIVER = {"toolkit_enabled": False}
CHANGE_DRIVER = {**ONLY_DRIVER, "driver_allow_change": True}
OPEN, PROPRIETARY = "kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms"
FOREIGN_SPEC = """\
Name: site-render
Version: 1
Release: 1
Summary: depends on one version of the driver
License: none
BuildArch: noarch
Requires: {needs}
%description
None.
%files
"""


@pytest.fixture(scope="module")
def el7(bare_host: HostFactory) -> Host:
    return bare_host("el7")


def versions(host: Host) -> dict[str, str]:
    listed = host.output("rpm -qa --qf '%{NAME} %{VERSION}\\n' | grep -E '^(kmod-)?nvidia-'")
    return dict(line.split() for line in listed.splitlines() if "container" not in line)


def transactions(host: Host) -> int:
    """Number of transactions in yum's history."""
    rows = host.output("yum -q history list").splitlines()
    return max(int(row.split("|")[0]) for row in rows if row.split("|")[0].strip().isdigit())


def install_foreign(host: Host, needs: str) -> None:
    """Install a package that gpufleet does not manage and that requires `needs`."""
    host.put("/root/site.spec", FOREIGN_SPEC.format(needs=needs))
    host.run("rpmbuild --quiet -bb --define '_rpmdir /root' /root/site.spec")
    host.run("rpm -U --replacepkgs --force-debian /root/noarch/site-render-1-1.noarch.rpm")


def assert_one_transaction(host: Host, version: str) -> None:
    family, before = set(versions(host)), transactions(host)
    done = run_deploy("gpu_node", [host], driver_version=version, **CHANGE_DRIVER)
    assert done.returncode == 0, done.output
    assert versions(host) == dict.fromkeys(family, version)
    assert host.output("cat /sys/module/nvidia/version") == version
    assert transactions(host) == before + 1
    locks = host.output("yum -q versionlock list").splitlines()
    assert len([lock for lock in locks if "nvidia" in lock]) == len(family)
    assert all(version in lock for lock in locks if "nvidia" in lock)
    again = run_deploy("gpu_node", [host], driver_version=version, **ONLY_DRIVER)
    assert again.changes() == {"el7": 0}


@pytest.mark.claim(
    "On EL, one transaction changes the version, the flavour or a foreign package family.",
    level=3,
)
@pytest.mark.extended
def test_a_downgrade_is_one_transaction(el7: Host) -> None:
    done = run_deploy("gpu_node", [el7], **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    assert set(versions(el7).values()) == {NEW}
    assert_one_transaction(el7, OLD)


@pytest.mark.extended
def test_an_upgrade_is_one_transaction(el7: Host) -> None:
    assert_one_transaction(el7, NEW)


@pytest.mark.extended
def test_the_other_flavour_is_removed_in_the_same_transaction(el7: Host) -> None:
    """The user installed the open modules, which this kernel cannot load: they are replaced."""
    el7.run("yum -q versionlock clear")
    el7.run(f"printf 'remove {PROPRIETARY}\\ninstall {OPEN}-{NEW}\\nrun\\n' | yum -y shell")
    assert OPEN in versions(el7)
    assert PROPRIETARY not in versions(el7)
    before = transactions(el7)
    done = run_deploy("gpu_node", [el7], **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    assert OPEN not in versions(el7)
    assert versions(el7)[PROPRIETARY] == NEW
    assert el7.output("modinfo -F license nvidia") == "NVIDIA"
    assert transactions(el7) == before + 1


@pytest.mark.extended
def test_a_foreign_package_that_would_be_removed_blocks(el7: Host) -> None:
    el7.run("yum -q versionlock clear")
    el7.run(f"printf 'remove {PROPRIETARY}\\ninstall {OPEN}-{NEW}\\nrun\\n' | yum -y shell")
    install_foreign(el7, OPEN)
    before = versions(el7), transactions(el7)
    done = run_deploy("gpu_node", [el7], **ONLY_DRIVER)
    assert done.returncode == 1
    assert "GF314" in done.codes("el7"), done.output
    assert "site-render" in done.output
    assert (versions(el7), transactions(el7)) == before
    el7.run("rpm -e site-render")


@pytest.mark.extended
def test_a_foreign_package_that_forbids_the_downgrade_blocks(el7: Host) -> None:
    assert run_deploy("gpu_node", [el7], **ONLY_DRIVER).returncode == 0
    install_foreign(el7, f"{PROPRIETARY} = 3:{NEW}")
    before = versions(el7), transactions(el7)
    done = run_deploy("gpu_node", [el7], driver_version=OLD, **CHANGE_DRIVER)
    assert done.returncode == 1
    assert "GF319" in done.codes("el7"), done.output
    assert "site-render" in done.output
    assert (versions(el7), transactions(el7)) == before
    locks = el7.output("yum -q versionlock list")
    assert locks.count(NEW) == len(versions(el7)), "a refusal keeps the locks"
    el7.run("rpm -e site-render")


STOCK = """\
[base]
name=CentOS-$releasever - Base
mirrorlist=http://mirrorlist.centos.org/?release=$releasever&arch=$basearch&repo=os&infra=$infra
#baseurl=http://mirror.centos.org/centos/$releasever/os/$basearch/
gpgcheck=1
gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-CentOS-7

#released updates
[updates]
name=CentOS-$releasever - Updates
mirrorlist=http://mirrorlist.centos.org/?release=$releasever&arch=$basearch&repo=updates
gpgcheck=1
gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-CentOS-7

[centosplus]
name=CentOS-$releasever - Plus
mirrorlist=http://mirrorlist.centos.org/?release=$releasever&arch=$basearch&repo=centosplus
gpgcheck=1
enabled=0
"""
BASE = "/etc/yum.repos.d/CentOS-Base.repo"
ARCHIVES = "/etc/yum.repos.d/gpufleet-archives.repo"


@pytest.fixture
def stock(el7: Host) -> Host:
    """A stock CentOS 7 host: its base repositories are offline, and it has no EPEL."""
    el7.reset()
    el7.put(BASE, STOCK)
    el7.run("rpm -e dkms", check=False)
    return el7


@pytest.fixture
def archives(mirror_host: Host) -> dict[str, str]:
    key = mirror_host.get("/srv/mirror/tree/archives/epel/RPM-GPG-KEY-EPEL-7")
    return {
        "node_archives_url": "http://mirror/archives",
        "node_archives_key_fingerprint": primary_fingerprints(key.encode())[0],
    }


@pytest.mark.extended
def test_a_stock_host_is_refused_before_any_change(stock: Host) -> None:
    assert stock.run("yum -q makecache", check=False).returncode != 0
    before = snapshot(stock)
    done = run_deploy("gpu_node", [stock])
    assert done.returncode == 1
    assert {"GF317", "GF318"} <= done.codes("el7")
    assert "node_archives" in done.output
    assert differences(before, snapshot(stock)) == {}


@pytest.mark.extended
def test_a_wrong_key_of_the_archive_is_not_trusted(stock: Host, archives: dict[str, str]) -> None:
    before = snapshot(stock, "/var/lib/gpufleet")
    wrong = archives | {"node_archives_key_fingerprint": "A" * 40}
    done = run_deploy("gpu_node", [stock], node_archives=True, **wrong)
    assert done.returncode == 1
    assert "GF310" in done.codes("el7"), done.output
    assert "node_archives_key_fingerprint" in done.output
    assert differences(before, snapshot(stock, "/var/lib/gpufleet")) == {}


@pytest.mark.extended
def test_an_unreadable_archive_leaves_the_files_unchanged(
    stock: Host, archives: dict[str, str], mirror_host: Host
) -> None:
    mirror_host.put("/etc/sim/faults.json", '[{"path": "7.9.2009/updates", "mode": "404"}]')
    try:
        done = run_deploy("gpu_node", [stock], node_archives=True, **archives)
    finally:
        mirror_host.put("/etc/sim/faults.json", "[]")
    assert done.returncode == 1
    assert "GF312" in done.codes("el7"), done.output
    assert stock.get(BASE) == STOCK
    assert stock.run(f"test -e {ARCHIVES}", check=False).returncode == 1


@pytest.mark.claim(
    "On CentOS 7, archives replace the dead repositories if a key asks for it. A removal "
    "puts the files back.",
    level=3,
)
def test_archives_replace_dead_repositories_until_removal(
    stock: Host, archives: dict[str, str]
) -> None:
    """Only dead sections are disabled; a second run changes nothing; removal restores all."""
    done = run_deploy("gpu_node", [stock], node_archives=True, **archives)
    assert done.returncode == 0, done.output
    assert set(versions(stock).values()) == {NEW}
    assert "dkms" in stock.output("rpm -q dkms")
    assert "GF320" in done.codes("el7")
    base = stock.get(BASE)
    assert base.count("enabled=0") == 3
    untouched = [line for line in STOCK.splitlines() if line not in base.splitlines()]
    assert untouched == []
    listed = stock.output("yum -q repolist")
    assert {"gpufleet-archive-centos7-base", "gpufleet-archive-epel7"} <= set(listed.split())
    assert not {"base", "updates", "centosplus"} & set(listed.split())
    again = run_deploy("gpu_node", [stock], node_archives=True, **archives)
    assert again.changes() == {"el7": 0}, again.output
    gone = run_deploy("remove", [stock], node_archives=True, **archives)
    assert gone.returncode == 0, gone.output
    assert stock.get(BASE) == STOCK
    assert stock.run(f"test -e {ARCHIVES}", check=False).returncode == 1
    assert stock.run("ls /etc/pki/rpm-gpg/*gpufleet*", check=False).returncode != 0


@pytest.mark.extended
def test_the_toolkit_alone_uses_archives_and_locks(stock: Host, archives: dict[str, str]) -> None:
    alone = {"driver_enabled": False, "node_archives": True, **archives}
    done = run_deploy("gpu_node", [stock], **alone)
    assert done.returncode == 0, done.output
    assert "yum-plugin-versionlock" in stock.output("rpm -q yum-plugin-versionlock")
    locks = stock.output("yum -q versionlock list").splitlines()
    assert len([lock for lock in locks if "nvidia-container" in lock]) == 4
    again = run_deploy("gpu_node", [stock], **alone)
    assert again.changes() == {"el7": 0}, again.output
