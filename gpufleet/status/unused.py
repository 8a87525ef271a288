"""Finds drivers and kernels that are installed on a host but not in use. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.core.findings import Finding
from gpufleet.driver.findings.host import REBOOT_NEEDED
from gpufleet.facts.kernels import newer_kernel
from gpufleet.facts.model import NodeFacts


def not_in_use(facts: NodeFacts) -> Iterator[Finding]:
    """The reasons for a reboot of the host."""
    loaded, installed = facts.loaded_driver, facts.module_on_disk
    if loaded and installed and installed.version and installed.version != loaded:
        why = f"Driver {installed.version} is installed, {loaded} is loaded"
        yield REBOOT_NEEDED(why=why)
    if newer := newer_kernel(facts):
        why = f"Kernel {newer} is installed, {facts.kernel.release} runs"
        yield REBOOT_NEEDED(why=why)
