"""Finds the releases that Flux or Argo CD applies. Pure.

Flux uses helm, which leaves a record. Argo CD applies the objects of a rendered chart without one,
so that only the objects show which chart they are of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpufleet.kube.facts import HelmRelease, ReleaseRef, Workload
from gpufleet.kube.keepers import Keeper

RECORDING = "Flux"  # the tool that uses helm
CHART_LABELS = ("helm.sh/chart", "chart")  # CHART-VERSION; charts set one of them


def with_keepers(
    releases: Sequence[HelmRelease], workloads: Sequence[Workload]
) -> tuple[tuple[HelmRelease, ...], tuple[Workload, ...]]:
    """The releases with their keepers, and the workloads. Releases from files of `gpufleet render`
    that have no record are added, and their workloads get their name."""
    named = [_claimed(work) for work in workloads]
    rendered = {
        work.release: work.keeper
        for work in named
        if work.release and work.keeper and work.keeper.chart
    }
    found = {release.ref: _with_keeper(release, named) for release in releases}
    for ref in sorted(rendered):
        if ref not in found:
            found[ref] = _unrecorded(ref, ref.name, rendered[ref], named)
    return tuple(found.values()), tuple(named)


def _claimed(work: Workload) -> Workload:
    """The workload with the release that its Application is named after."""
    chart = work.keeper.chart if work.keeper and not work.release else ""
    return replace(work, release=ReleaseRef(work.namespace, chart)) if chart else work


def _with_keeper(release: HelmRelease, workloads: Sequence[Workload]) -> HelmRelease:
    """The release with its keeper. The record of one that Argo CD took over is out of date."""
    keepers = (work.keeper for work in release.among(workloads) if work.keeper)
    keeper = next(keepers, None)
    if keeper and keeper.tool != RECORDING:
        return _unrecorded(release.ref, release.chart, keeper, workloads)
    return replace(release, keeper=keeper)


def _unrecorded(
    ref: ReleaseRef, chart: str, keeper: Keeper, workloads: Iterable[Workload]
) -> HelmRelease:
    """A release without a record: its values are unknown."""
    own = [work for work in workloads if work.release == ref]
    return HelmRelease(
        name=ref.name,
        namespace=ref.namespace,
        revision=0,
        status="deployed",
        chart=chart,
        chart_version=_version(chart, own),
        app_version="",
        values={},
        workloads=tuple(work.ref for work in own),
        keeper=keeper,
    )


def _version(chart: str, workloads: Iterable[Workload]) -> str:
    """The chart's version from a label, or "". Workloads of subcharts name their own charts."""
    pattern = re.compile(rf"{re.escape(chart)}-(v?\d.*)")
    labels = (str(work.labels.get(key)) for work in workloads for key in CHART_LABELS)
    return next((match[1] for label in labels if (match := pattern.fullmatch(label))), "")
