"""Whether the objects of a release that operators turn into workloads work. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpufleet.core.findings import Finding
from gpufleet.helm.findings import readiness as findings
from gpufleet.kube.facts import ObjectRef, ReleaseRef, Workload


@dataclass(frozen=True, slots=True)
class OperatedWait:
    """`broken`: object -> why it does not work. `silent`: those that no operator has reported on or
    made a workload of."""

    broken: Mapping[ObjectRef, str]
    silent: tuple[ObjectRef, ...]

    def lines(self, *, soon: bool) -> list[str]:
        """What to wait for. `soon`: an operator may still report."""
        late = {ref: "no operator has reported on it yet" for ref in self.silent if soon}
        return [f"{ref.kind} {ref.name}: {why}" for ref, why in {**self.broken, **late}.items()]

    def made(self, workloads: Sequence[Workload]) -> list[Workload]:
        """The workloads of the objects that do not work."""
        return [work for work in workloads if work.maker in self.broken]

    def findings(self, release: ReleaseRef) -> list[Finding]:
        return [
            findings.OPERATOR_SILENT(
                object=f"{ref.kind} {ref.namespace}/{ref.name}",
                release=release,
                namespace=ref.namespace,
            )
            for ref in self.silent
        ]


def operated_wait(
    objects: Sequence[ObjectRef], states: Mapping[ObjectRef, str], workloads: Sequence[Workload]
) -> OperatedWait:
    """What of a release's objects does not work. `states`: what operators report, "" if an object
    works."""
    makers = {work.maker for work in workloads}
    return OperatedWait(
        {ref: states[ref] for ref in objects if states.get(ref)},
        tuple(ref for ref in objects if ref not in states and ref not in makers),
    )
