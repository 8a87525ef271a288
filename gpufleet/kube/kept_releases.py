"""Finds the releases that Flux or Argo CD applies. Pure.

Flux uses helm, which leaves a record. Argo CD applies the objects of a rendered chart without one,
so that only the objects show which chart they are of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpufleet.kube.facts import HelmRelease, ReleaseRef, Workload

CHART_LABELS = ("helm.sh/chart", "chart")  # CHART-VERSION; charts set one of them


def with_keepers(
    releases: Sequence[HelmRelease], workloads: Sequence[Workload]
) -> tuple[tuple[HelmRelease, ...], tuple[Workload, ...]]:
    """The releases with their keepers, and the workloads. Releases that Argo CD applies from files
    of `gpufleet render` are added, and their workloads get their name."""
    kept = [_claimed(work) for work in workloads]
    known = {release.ref for release in releases}
    added = {work.release for work in kept if work.keeper and work.keeper.tool != "Flux"} - known
    found = [_with_keeper(release, kept) for release in releases]
    found += [_argocd_release(ref, kept) for ref in sorted(filter(None, added))]
    return tuple(found), tuple(kept)


def _claimed(work: Workload) -> Workload:
    """The workload with the release that its Application is named after."""
    chart = work.keeper.chart if work.keeper and not work.release else ""
    return replace(work, release=ReleaseRef(work.namespace, chart)) if chart else work


def _with_keeper(release: HelmRelease, workloads: Iterable[Workload]) -> HelmRelease:
    keepers = (work.keeper for work in release.among(workloads) if work.keeper)
    return replace(release, keeper=next(keepers, None))


def _argocd_release(ref: ReleaseRef, workloads: Iterable[Workload]) -> HelmRelease:
    """A release without a record: its values are unknown."""
    own = [work for work in workloads if work.release == ref]
    return HelmRelease(
        name=ref.name,
        namespace=ref.namespace,
        revision=0,
        status="deployed",
        chart=ref.name,
        chart_version=_version(ref.name, own),
        app_version="",
        values={},
        workloads=tuple(work.ref for work in own),
        keeper=own[0].keeper,
    )


def _version(chart: str, workloads: Iterable[Workload]) -> str:
    """The chart's version from a label, or "". Workloads of subcharts name their own charts."""
    pattern = re.compile(rf"{re.escape(chart)}-(v?\d.*)")
    labels = (work.labels.get(key, "") for work in workloads for key in CHART_LABELS)
    return next((match[1] for label in labels if (match := pattern.fullmatch(label))), "")
