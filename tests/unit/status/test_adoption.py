"""The output of `gpufleet adopt` about drivers, toolkits and runtimes from other sources."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from gpufleet.facts.model import ManagedFile, ModuleOnDisk, NodeFacts, OsRelease, Package, Runtime
from gpufleet.facts.record import EMPTY_RECORD
from gpufleet.node.catalog import load_catalog
from gpufleet.status.adoption import Adoption, adoption_of, show_adoptions
from tests.unit.hosts import plan_for
from tests.unit.status.fleets import NOW, bare, healthy, seen, silent

SERVER = ("nvidia-utils-535-server", "nvidia-dkms-535-server", "libnvidia-compute-535-server")
BOOKWORM = OsRelease("debian", "12", (), "bookworm", "Debian GNU/Linux 12 (bookworm)")
UBUNTU = "0ubuntu0.22.04.1"


def foreign(version: str, *names: str, revision: str = UBUNTU, **changes: Any) -> NodeFacts:
    """A host with a driver that works, from these packages, and no record."""
    packages = {name: Package(name, f"{version}-{revision}", "amd64") for name in names}
    facts = replace(healthy(version), provenance=EMPTY_RECORD, holds=frozenset())
    return replace(facts, packages=packages or facts.packages, **changes)


def adoption(facts: NodeFacts, **data: Any) -> Adoption:
    found = adoption_of(seen("gpu-07", facts, **data), load_catalog(), NOW)
    assert found
    return found


def keys(found: Adoption) -> list[str]:
    return [line for line in found.pins if not line.startswith("#")]


def test_a_driver_of_our_source_stays_at_its_version_and_is_held() -> None:
    found = adoption(foreign("550.163.01"))
    assert keys(found) == ['driver_version = "550.163.01"']
    assert found.pins[0].startswith("# GF149 ")
    assert found.stays == ("driver 550.163.01",)
    assert "driver: hold the driver packages" in found.steps
    assert not [step for step in found.steps if "the driver:" in step]


def test_a_branch_that_the_inventory_sets_is_corrected_too() -> None:
    found = adoption(foreign("550.163.01"), driver_branch="580")
    assert keys(found) == ['driver_version = "550.163.01"', 'driver_branch = "550"']


def test_what_needs_no_setting_gets_none() -> None:
    assert adoption(foreign("580.178.04")).pins == ()
    bare_host = adoption(bare())
    assert (bare_host.pins, bare_host.stays) == ((), ())
    assert any("install the driver" in step for step in bare_host.steps)


def test_ubuntu_s_server_driver_is_completed_from_ubuntu() -> None:
    found = adoption(foreign("535.261.03", *SERVER), driver_branch="580")
    version, branch = 'driver_version = "535.261.03"', 'driver_branch = "535"'
    assert keys(found) == [version, branch, 'driver_source = "distro"']
    assert found.stays == ("driver 535.261.03",)
    assert any("repair the driver: 535.261.03" in step for step in found.steps)


def test_debian_s_own_driver_gets_its_source() -> None:
    host = bare(os=BOOKWORM)
    version = plan_for(host, driver_source="distro").choice.newest_known or ""
    names = plan_for(host, driver_source="distro").packages
    facts = foreign(version, *names, revision="1~deb12u1", os=BOOKWORM)
    facts = replace(facts, module_on_disk=ModuleOnDisk(version, "NVIDIA"))
    found = adoption(facts)
    assert keys(found) == [f'driver_version = "{version}"', 'driver_source = "distro"']
    assert found.stays == (f"driver {version}",)


def test_a_driver_that_is_not_from_packages_no_longer_blocks() -> None:
    facts = foreign("580.82.09", "bash", runfile_install=True)
    assert keys(adoption(facts)) == ["driver_enabled = False"]
    assert adoption(facts).pins[0].startswith("# GF146 ")
    assert adoption(facts).stays == ("driver 580.82.09, not of gpufleet",)
    assert (adoption(facts).steps, adoption(facts).blockers) == ((), ())


def test_a_blocker_that_no_setting_removes_is_shown() -> None:
    facts = bare(free_bytes={"/usr": 10**6, "/var": 10**11, "/boot": 10**9})
    assert [each.code for each in adoption(facts).blockers] == ["GF540"]


def test_toolkit_and_runtime_stay_where_nothing_changes_them() -> None:
    docker = Runtime("docker", "27.5.1", "docker.service", "/etc/docker/daemon.json", running=True)
    daemon = ManagedFile(docker.config_path, None)
    facts = healthy(runtimes={"docker": docker}, files={docker.config_path: daemon})
    assert "docker 27.5.1" in adoption(facts).stays
    names = load_catalog().toolkit.packages.names
    old = {name: Package(name, "1.16.2-1", "amd64") for name in names}
    old |= facts.packages
    found = adoption(replace(facts, packages=old), toolkit_enabled=True, toolkit_version="1.17.8")
    assert 'toolkit_version = "1.16.2"' in keys(found)
    assert "container toolkit 1.16.2" in found.stays
    assert "docker 27.5.1" not in found.stays
    assert any("write /etc/docker/daemon.json" in step for step in found.steps)


def test_a_host_that_cannot_be_planned_has_none() -> None:
    assert adoption_of(silent("gpu-08"), load_catalog(), NOW) is None
    assert adoption_of(seen("gpu-08", bare(), driver_brnch="580"), load_catalog(), NOW) is None


@pytest.mark.parametrize("width", [80, 160])
def test_hosts_that_are_alike_are_shown_once(width: int) -> None:
    same, other = adoption(foreign("550.163.01")), adoption(bare())
    out = io.StringIO()
    show_adoptions(Console(file=out, width=width), [("a-1", same), ("b", other), ("a-2", same)])
    text = out.getvalue()
    assert "2 hosts (a-[1-2])" in text
    assert text.count('driver_version = "550.163.01"') == 1
    assert max(map(len, text.splitlines())) <= width
