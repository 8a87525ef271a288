"""The removal plan after unfinished runs: it also removes the changes that they began."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.driver.files import MODPROBE_FILE
from gpufleet.driver.role import ROLE as DRIVER_ROLE
from gpufleet.exporter.files import UNIT, UNIT_FILE
from gpufleet.exporter.role import ROLE as EXPORTER
from gpufleet.facts.model import NodeFacts, Package, Service
from gpufleet.facts.record import EMPTY_RECORD
from gpufleet.node.unfinished import Unfinished, parse_unfinished
from gpufleet.toolkit.role import ROLE as TOOLKIT
from tests.unit.hosts import record_of
from tests.unit.node.removal_plan_setup import RECORD, codes, host, plan

DRIVER = "580.159.03"
DCGM = "datacenter-gpu-manager-exporter"
DRIVER_BEGUN = Unfinished(
    there=True,
    begun={"driver": ("dkms", "drv", "drv-dkms", "never-came")},
    added={"driver": ("drv", "drv-dkms", "drv-lib")},
    written=(MODPROBE_FILE, "/etc/apt/sources.list.d/cuda.list"),
)


def bare(*names: str, **changes: Any) -> NodeFacts:
    """A host without a record, with these packages."""
    packages = {name: Package(name, f"{DRIVER}-1", "amd64") for name in names}
    return replace(host(provenance=EMPTY_RECORD), packages=packages, **changes)


def test_a_driver_whose_installation_failed_goes() -> None:
    """`dkms` was installed before the run, `drv-lib` with it, and `never-came` was not."""
    facts = bare("dkms", "drv", "drv-dkms", "drv-lib", holds=frozenset({"drv"}))
    done = plan(facts, DRIVER_BEGUN)
    assert done.owns
    assert done.packages == ("drv", "drv-dkms", "drv-lib")
    assert set(done.held) == {"dkms", "drv", "drv-dkms"}
    assert done.paths == DRIVER_BEGUN.written
    assert done.of(DRIVER_ROLE).initramfs == MODPROBE_FILE
    assert done.of(DRIVER_ROLE).unload
    assert dict(done.roles)["driver"].movement == {"before": DRIVER, "after": None}
    assert codes(done) == {"GF572", "GF562"}
    assert "remove the record" in done.steps()[-1]


def test_prerequisites_alone_are_no_driver() -> None:
    """The transaction of the driver itself never ran."""
    there = ("dkms", "linux-headers-5.15.0-122-generic")
    begun = Unfinished(True, {"driver": (*there, "drv")}, {"driver": there})
    done = plan(bare(*there), begun)
    assert set(done.packages) == set(there)
    assert dict(done.roles)["driver"].movement.get("before") is None


def test_a_driver_that_was_there_before_is_not_unloaded() -> None:
    left = replace(DRIVER_BEGUN, added={"driver": ()})
    done = plan(bare("drv", "drv-dkms"), left)
    assert not done.of(DRIVER_ROLE).unload
    assert done.packages == ()
    assert dict(done.roles)["driver"].movement == {"before": DRIVER, "after": DRIVER}


def test_a_failed_toolkit_is_removed_with_a_recorded_driver() -> None:
    record = {"driver": RECORD["driver"], "files": {}}
    begun = Unfinished(True, {"toolkit": ("t",)}, {"toolkit": ("t",)})
    done = plan(host(provenance=record_of(**record)), begun)
    assert {"a", "lib", "t"} == set(done.packages)
    assert {"a", "b", "t"} == set(done.held)
    assert "/var/run/cdi/nvidia.yaml" in done.of(TOOLKIT).specs
    assert dict(done.roles)["toolkit"].movement == {"before": "1", "after": None}
    assert "GF572" in codes(done)


@pytest.mark.parametrize(
    "left",
    [Unfinished(there=True, written=(UNIT_FILE,)), Unfinished(there=True, images=("nvcr/x:1",))],
)
def test_an_exporter_in_docker_that_did_not_start_goes(left: Unfinished) -> None:
    services = {
        name: Service(name, "loaded", "active", "enabled") for name in (UNIT, "nvidia-dcgm.service")
    }
    done = plan(bare(services=services), left)
    assert done.of(EXPORTER).units == (UNIT,)  # DCGM is the user's
    assert done.of(EXPORTER).images
    assert "exporter" in dict(done.roles)


def test_an_exporter_of_packages_that_did_not_start_goes() -> None:
    services = {
        "nvidia-dcgm.service": Service("nvidia-dcgm.service", "loaded", "active", "enabled")
    }
    left = Unfinished(True, {"exporter": (DCGM,)}, {"exporter": (DCGM,)})
    done = plan(bare(DCGM, services=services), left)
    assert done.of(EXPORTER).units == ("nvidia-dcgm.service",)
    assert done.packages == (DCGM,)


def test_a_run_that_stopped_before_its_packages_leaves_nothing_behind() -> None:
    done = plan(bare(), Unfinished(there=True))
    assert done.owns
    assert done.roles == ()
    assert codes(done) == {"GF572"}


def test_what_the_host_says_is_read() -> None:
    lines = ["there", "begun driver a", "begun driver b", "begun driver a", "written /etc/a b"]
    assert parse_unfinished([*lines, "image nvcr.example/x:1"]) == Unfinished(
        there=True,
        begun={"driver": ("a", "b")},
        written=("/etc/a b",),
        images=("nvcr.example/x:1",),
    )
