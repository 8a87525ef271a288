"""Hosts made of facts, for plan tests."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from gpufleet.driver.plan import DriverPlan, plan_driver
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.exporter.files import own_pids
from gpufleet.facts.model import (
    Kernel,
    ModuleOnDisk,
    NodeFacts,
    OsRelease,
    Package,
    PciDevice,
    Service,
)
from gpufleet.facts.record import HostRecord, read_record
from gpufleet.node.catalog import load_catalog
from gpufleet.node.settings import load_node_settings
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.role.protocol import RoleContext

KERNEL = "5.15.0-122-generic"
A100 = PciDevice("0000:17:00.0", 0x20B2, 0x030200)
NVSWITCH = PciDevice("0000:05:00.0", 0x22A3, 0x068000)


def bare_host(**changes: Any) -> NodeFacts:
    """An Ubuntu 22.04 host with one A100 and no driver."""
    facts = NodeFacts(
        os=OsRelease("ubuntu", "22.04", ("debian",), "jammy", "Ubuntu 22.04"),
        kernel=Kernel(KERNEL, "x86_64", headers=False, secure_boot=False),
        boot_id="1",
        clock=1_790_000_000,
        package_manager="apt",
        pci=(A100,),
        free_bytes={"/": 10**11, "/usr": 10**11, "/var": 10**11, "/boot": 10**9},
    )
    return replace(facts, **changes)


def record_of(**entries: Any) -> HostRecord:
    """The record of a host, by keys of its JSON."""
    return read_record(json.dumps(entries))


def plan_for(facts: NodeFacts, **data: Any) -> DriverPlan:
    """The plan of the driver for a host, with the data of its inventory."""
    settings, problems = load_node_settings(data)
    assert settings is not None, problems
    catalog = load_catalog()
    context = RoleContext(facts, catalog, spared=own_pids(facts, catalog))
    return plan_driver(settings.of(DRIVER), context)


def resolved_transaction(**fields: Any) -> PackageTransaction:
    """A transaction of the driver role on a host with apt; `fields` are those of the type."""
    names = tuple(name for name, _ in fields.get("install", ()))
    known: dict[str, Any] = {"role": "driver", "title": "driver", "packages": names}
    return PackageTransaction(**(known | {"facts": bare_host()} | fields))


def converged_host(version: str = "580.159.03", **changes: Any) -> NodeFacts:
    """The host of bare_host() after gpu_node installed `version`."""
    plan = plan_for(bare_host(), driver_version=version)
    packages = {name: Package(name, f"{version}-0ubuntu1", "amd64") for name in plan.packages}
    packages |= {name: Package(name, "1", "amd64") for name in plan.choice.packages.build}
    facts = bare_host(
        pci=(replace(A100, driver="nvidia"),),
        kernel=Kernel(KERNEL, "x86_64", headers=True, secure_boot=False),
        packages=packages,
        holds=frozenset(plan.packages),
        modules={
            "nvidia": version,
            "nvidia_uvm": version,
        },
        module_on_disk=ModuleOnDisk(
            version, "Dual MIT/GPL" if plan.choice.modules == "open" else "NVIDIA"
        ),
        library=version,
        provenance=record_of(
            driver={
                "packages": dict.fromkeys(plan.packages, version),
                "added": list(plan.packages),
                "gpus": 1,
            }
        ),
        services={
            "nvidia-persistenced.service": Service(
                "nvidia-persistenced.service", "loaded", "active", "enabled"
            )
        },
    )
    return replace(facts, **changes)
