"""Workloads that an upgrade must recreate: the new chart has another selector. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpufleet.helm.release import ReleasePlan
from gpufleet.kube.facts import ClusterFacts, Workload
from gpufleet.kube.parse import object_ref


def recreated(
    plan: ReleasePlan, objects: Sequence[Mapping[str, Any]], facts: ClusterFacts
) -> Iterator[Workload]:
    """Workloads of the release whose selector differs from the rendered object's.

    spec.selector is immutable: the workload must be recreated.
    """
    there = {work.ref: work for work in facts.workloads_of(plan.release.ref)}
    for item in objects:
        work = there.get(object_ref(item, plan.release.namespace))
        if work and dict(work.selector) != _selector(item):
            yield work


def _selector(item: Mapping[str, Any]) -> dict[str, str]:
    return dict(((item.get("spec") or {}).get("selector") or {}).get("matchLabels") or {})
