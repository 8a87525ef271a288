"""The catalog for package decisions: distributions, and NVIDIA's repositories."""

from __future__ import annotations

from gpufleet.core.distributions import Distribution, Systemd
from gpufleet.core.entries import Entry
from gpufleet.packages.models import CudaRepository


class PackageCatalog(Entry):
    """Facts about distributions and repositories."""

    distributions: tuple[Distribution, ...]
    cuda: CudaRepository
    offline: Systemd

    def distribution(self, code: str) -> Distribution | None:
        return next((d for d in self.distributions if d.code == code), None)
