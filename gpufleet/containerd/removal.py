"""Removal plan of containerd: only one that gpufleet installed goes, by its package. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpufleet.containerd.models import Containerd
from gpufleet.containerd.plan import PACKAGED
from gpufleet.containerd.record import ContainerdEntry
from gpufleet.core.findings import Finding
from gpufleet.role.protocol import Removal, RemovalContext


@dataclass(frozen=True, slots=True)
class ContainerdRemoval(Removal):
    """What is done before the package goes, which the package manager does where nothing else
    needs it."""

    goes: bool  # the host has gpufleet's package
    config: str
    restores: bool  # the package's own file was replaced
    findings: tuple[Finding, ...] = ()

    def first(self) -> Mapping[str, object]:
        return {"check that containerd runs no containers": self.goes}

    def before(self) -> Mapping[str, object]:
        return {f"restore the package's {self.config}": self.restores}


def plan_containerd_removal(context: RemovalContext[ContainerdEntry]) -> ContainerdRemoval:
    """By the record, and by the notes of an unfinished run."""
    known: Containerd = context.catalog.containerd
    goes = [name for name in known.packages if name in context.entry.added]
    return ContainerdRemoval(
        goes=any(name in context.facts.packages for name in goes),
        config=known.config,
        restores=PACKAGED in context.facts.cluster_host.paths,
    )
