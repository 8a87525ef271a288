"""RHEL/CentOS 7: one transaction whatever has to move, and repositories that are gone."""

from __future__ import annotations

import pytest
from conftest import HostFactory
from deploying import run_deploy

from gpufleet.sandbox import Host

pytestmark = pytest.mark.hosts

NEW, OLD = "550.163.01", "550.144.03"
ONLY_DRIVER = {"toolkit_enabled": False}
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
    """How many transactions yum has carried out."""
    rows = host.output("yum -q history list").splitlines()
    return max(int(row.split("|")[0]) for row in rows if row.split("|")[0].strip().isdigit())


def install_foreign(host: Host, needs: str) -> None:
    """A package that gpufleet knows nothing of, and that needs `needs`."""
    host.put("/root/site.spec", FOREIGN_SPEC.format(needs=needs))
    host.run("rpmbuild --quiet -bb --define '_rpmdir /root' /root/site.spec")
    host.run("rpm -U --replacepkgs --force-debian /root/noarch/site-render-1-1.noarch.rpm")


def test_a_downgrade_and_an_upgrade_are_one_transaction_each(el7: Host) -> None:
    done = run_deploy("gpu_node", [el7], **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    assert set(versions(el7).values()) == {NEW}
    family = set(versions(el7))
    for version in (OLD, NEW):
        before = transactions(el7)
        done = run_deploy("gpu_node", [el7], driver_version=version, **ONLY_DRIVER)
        assert done.returncode == 0, done.output
        assert versions(el7) == dict.fromkeys(family, version)
        assert el7.output("cat /sys/module/nvidia/version") == version
        assert transactions(el7) == before + 1
        locks = el7.output("yum -q versionlock list").splitlines()
        assert len([lock for lock in locks if "nvidia" in lock]) == len(family)
        assert all(version in lock for lock in locks if "nvidia" in lock)
        again = run_deploy("gpu_node", [el7], driver_version=version, **ONLY_DRIVER)
        assert again.changes() == {"el7": 0}


def test_the_other_flavour_leaves_in_the_same_transaction(el7: Host) -> None:
    """Somebody changed to the open modules, which this kernel cannot load: they are replaced."""
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


def test_a_foreign_package_that_would_go_too_blocks(el7: Host) -> None:
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


def test_a_foreign_package_that_forbids_the_move_blocks(el7: Host) -> None:
    assert run_deploy("gpu_node", [el7], **ONLY_DRIVER).returncode == 0
    install_foreign(el7, f"{PROPRIETARY} = 3:{NEW}")
    before = versions(el7), transactions(el7)
    done = run_deploy("gpu_node", [el7], driver_version=OLD, **ONLY_DRIVER)
    assert done.returncode == 1
    assert "GF319" in done.codes("el7"), done.output
    assert "site-render" in done.output
    assert (versions(el7), transactions(el7)) == before
    locks = el7.output("yum -q versionlock list")
    assert locks.count(NEW) == len(versions(el7)), "a refusal keeps the locks"
    el7.run("rpm -e site-render")
