"""What is installed on a host and not in use. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.core.findings import Finding
from gpufleet.facts.kernels import newer_kernel
from gpufleet.facts.model import NodeFacts
from gpufleet.status import findings


def not_in_use(facts: NodeFacts) -> Iterator[Finding]:
    """Why the host needs a reboot."""
    loaded, installed = facts.loaded_driver, facts.module_on_disk
    if loaded and installed and installed.version and installed.version != loaded:
        why = f"Driver {installed.version} is installed, {loaded} is loaded"
        yield findings.REBOOT(why=why)
    if newer := newer_kernel(facts):
        why = f"Kernel {newer} is installed, {facts.kernel.release} runs"
        yield findings.REBOOT(why=why)
