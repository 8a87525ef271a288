"""Faults of a host that a role sees."""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.core.findings import Finding


@dataclass(frozen=True, slots=True)
class Faults:
    """Faults of a host, as warnings. `repaired`: faults that the steps repair. `left`: faults that
    they do not repair, so that the run fails at its end."""

    repaired: tuple[Finding, ...] = ()
    left: tuple[Finding, ...] = ()

    @property
    def all(self) -> tuple[Finding, ...]:
        return (*self.repaired, *self.left)

    def __add__(self, other: Faults) -> Faults:
        return Faults((*self.repaired, *other.repaired), (*self.left, *other.left))


NO_FAULTS = Faults()
