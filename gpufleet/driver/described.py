"""Describes a host's GPUs and driver as data for `gpufleet doctor --json`. Pure."""

from __future__ import annotations

from typing import Any

from gpufleet.driver.catalog import DriverCatalog, devices_of
from gpufleet.driver.health import missing_gpus
from gpufleet.facts.model import NodeFacts


def described_driver(facts: NodeFacts, catalog: DriverCatalog) -> dict[str, Any]:
    """The description by JSON key of the host, such as "gpus" and "driver"."""
    names = {model.id: model.name for model in devices_of(catalog, [g.device for g in facts.gpus])}
    module = facts.module_on_disk
    return {
        "gpus": [
            {
                "model": names[gpu.device],
                "slot": gpu.slot,
                "driver": gpu.driver,
                "responds": gpu.answers,
            }
            for gpu in facts.gpus
        ],
        "missing_gpus": missing_gpus(facts),
        "nvswitches": [switch.slot for switch in facts.nvswitches],
        "driver": {
            "loaded": facts.loaded_driver,
            "installed": module.version if module else None,
            "modules": module.flavour if module else None,
            "library": facts.library,
        },
        "dkms": [
            {"name": b.name, "version": b.version, "kernel": b.kernel, "state": b.state}
            for b in facts.dkms
        ],
        "packages": [
            {"name": name, "version": package.version, "held": package.name in facts.holds}
            for name, package in sorted(facts.packages.items())
            if "nvidia" in name or name.startswith("cuda")
        ],
        "device_nodes": list(facts.device_nodes),
    }
