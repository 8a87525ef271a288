"""Decides if a host's GPUs work, for plan, apply, status and doctor; and describes them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpufleet.core.findings import Finding, Severity
from gpufleet.core.names import count_noun
from gpufleet.core.visible import Count
from gpufleet.driver.catalog import DriverCatalog, devices_of
from gpufleet.driver.files import own_gpus
from gpufleet.driver.findings import health as findings
from gpufleet.driver.record import DriverEntry
from gpufleet.facts.model import NodeFacts, PciDevice
from gpufleet.host.findings import MODULE_NOT_BUILT
from gpufleet.packages.holds import is_held
from gpufleet.role.faults import Faults


def assess_gpu_health(facts: NodeFacts, expected: int | None, *, repairs: bool) -> Faults:
    """The faults of a host's GPUs. `expected`: node_gpus, or, if None, the number in the record of
    the last successful run. `repairs`: the run loads or installs the driver."""
    of_module = tuple(_module_faults(facts, own_gpus(facts)))
    of_gpus = (*_lost(facts), *_too_few(facts, expected))
    if not of_module and not of_gpus:
        of_module = tuple(_unanswered(facts))
    return Faults(of_module, of_gpus) if repairs else Faults((), (*of_module, *of_gpus))


def missing_gpus(facts: NodeFacts) -> list[str]:
    """Slots of GPUs that the driver knows but the PCI bus does not."""
    there = {gpu.slot.lower() for gpu in facts.gpus}
    return [slot for slot in facts.taken if slot not in there]


def _module_faults(facts: NodeFacts, gpus: tuple[PciDevice, ...]) -> Iterator[Finding]:
    """The nvidia module is not built, not loaded, has another version, or is not bound to a GPU."""
    loaded, module = facts.loaded_driver, facts.module_on_disk
    installed = [module.version if module else None, facts.library]
    versions = list(dict.fromkeys(filter(None, installed)))
    if not gpus or not (versions or facts.modules.keys() & {"nvidia"}):
        return
    built = [each for each in facts.dkms if each.name.startswith("nvidia")]
    if built and module is None and not facts.operator_driver:
        version = next((each.version for each in built if each.version in versions), "")
        yield MODULE_NOT_BUILT(Severity.WARNING, version=version or built[-1].version)
    elif "nvidia" not in facts.modules:
        yield findings.NOT_LOADED(version=versions[0], kernel=facts.kernel.release)
    elif loaded and any(version != loaded for version in versions):
        other = next(version for version in versions if version != loaded)
        remedy = _remedy_of_mismatch(facts, other)
        yield findings.VERSION_MISMATCH(loaded=loaded, installed=other, remedy=remedy)
    unbound = [gpu.slot for gpu in gpus if gpu.driver is None and gpu.answers]
    if loaded and unbound:
        are = f"{Count(len(unbound)):GPU is|GPUs are}"
        yield findings.GPU_UNBOUND(count=are, slots=", ".join(unbound))


def _remedy_of_mismatch(facts: NodeFacts, installed: str) -> str:
    """What makes module and library one version. `installed`: the version that is not loaded."""
    if facts.operator_driver:
        return findings.REMOVE_PACKAGES
    known = facts.provenance.entry(DriverEntry).packages
    others = [name for name, package in facts.packages.items()
              if package.upstream == installed and name not in known]  # fmt: skip
    kept = facts.module_on_disk is not None and facts.module_on_disk.version == facts.loaded_driver
    if known and kept and others:
        return findings.REMOVE_LIBRARY.format(packages=", ".join(others), version=installed)
    return findings.LOAD_MATCHING


def _lost(facts: NodeFacts) -> Iterator[Finding]:
    """GPUs that fell off the bus."""
    silent = [gpu.slot for gpu in facts.gpus if not gpu.answers]
    for slots, what in (
        (missing_gpus(facts), "that the driver has and the PCI bus no longer has"),
        (silent, "with registers that cannot be read"),
    ):
        if slots:
            count = count_noun(len(slots), "GPU")
            yield findings.GPU_LOST(count=count, slots=", ".join(slots), what=what)


def _too_few(facts: NodeFacts, expected: int | None) -> Iterator[Finding]:
    """Fewer GPUs than the host should have, apart from GPUs that fell off the bus."""
    source, wanted = "node_gpus says", expected
    if wanted is None:
        source = "at its last change by gpufleet it had"
        damaged = facts.provenance.trouble([DriverEntry])
        wanted = 0 if damaged else facts.provenance.entry(DriverEntry).gpus
    if len(facts.gpus) + len(missing_gpus(facts)) < wanted:
        yield findings.TOO_FEW_GPUS(found=len(facts.gpus), source=source, wanted=wanted)


def _unanswered(facts: NodeFacts) -> Iterator[Finding]:
    """nvidia-smi fails, or lists fewer GPUs than are bound to the driver."""
    listed = facts.listed
    bound = [gpu for gpu in facts.gpus if gpu.driver == "nvidia"]
    if listed is None or not bound:
        return
    if listed.error:
        yield findings.SMI_FAILED(what=f"fails: {listed.error}")
    elif listed.gpus < len(bound):
        found, wanted = count_noun(listed.gpus, "GPU"), count_noun(len(bound), "GPU")
        yield findings.SMI_FAILED(what=f"lists {found}; the driver is bound to {wanted}")


def described_driver(facts: NodeFacts, catalog: DriverCatalog) -> dict[str, Any]:
    """The GPUs and the driver as data for `gpufleet doctor --json`, by JSON key of the host."""
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
            {"name": name, "version": package.version, "held": is_held(name, facts)}
            for name, package in sorted(facts.packages.items())
            if "nvidia" in name or name.startswith("cuda")
        ],
        "device_nodes": list(facts.device_nodes),
    }
