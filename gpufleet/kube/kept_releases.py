"""Finds the releases that Flux or Argo CD applies. Pure.

Flux uses helm, which leaves a record. Argo CD applies the objects of a rendered chart without one,
so that only the objects show which chart they are of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpufleet.core.quoting import quote_field
from gpufleet.kube.facts import HelmRelease, ReleaseRef, Workload
from gpufleet.kube.keepers import Keeper

RECORDING = "Flux"  # the tool that uses helm
NO_REVISION = "it has installed no revision yet"
CHART_LABELS = ("helm.sh/chart", "chart")  # CHART-VERSION; charts set one of them


def with_keepers(
    releases: Sequence[HelmRelease],
    workloads: Sequence[Workload],
    helm_releases: Iterable[Mapping[str, Any]] = (),
) -> tuple[tuple[HelmRelease, ...], tuple[Workload, ...]]:
    """The releases with their keepers, and the workloads. Releases from files of `gpufleet render`
    that have no record are added, and their workloads get their name. `helm_releases`: those of
    Flux, which also report problems."""
    named = [_claimed(work) for work in workloads]
    # those with a kubeconfig are for another cluster
    local = (item for item in helm_releases if not (item.get("spec") or {}).get("kubeConfig"))
    flux = dict(map(_flux_release, local))
    shown = {
        work.release: work.keeper
        for work in named
        if work.release and work.keeper and work.keeper.chart
    }
    rendered = {ref: keeper for ref, (keeper, _) in flux.items() if keeper.chart == ref.name}
    rendered |= shown
    found = {release.ref: _with_keeper(release, named, flux) for release in releases}
    for ref in sorted(rendered):
        if ref not in found:
            new = _unrecorded(ref, ref.name, rendered[ref], named)
            problem = flux[ref][1] if ref in flux else ""
            found[ref] = replace(new, problem=problem or ("" if ref in shown else NO_REVISION))
    return tuple(found.values()), tuple(named)


def _flux_release(item: Mapping[str, Any]) -> tuple[ReleaseRef, tuple[Keeper, str]]:
    """The release of a HelmRelease; its keeper, and why it is not applied, or "".

    Source: https://fluxcd.io/flux/components/helm/helmreleases/ (read 2026-11-30)
    """
    about, spec = item["metadata"], item.get("spec") or {}
    target = str(spec.get("targetNamespace") or "")
    name = spec.get("releaseName") or "-".join(filter(None, (target, about["name"])))
    ref = ReleaseRef(target or about["namespace"], str(name))
    keeper = Keeper(RECORDING, "HelmRelease", about["namespace"], about["name"])
    return ref, (keeper, _problem(item))


def _problem(item: Mapping[str, Any]) -> str:
    """Why a HelmRelease is not applied, or "". After a roll-back Ready has the message of that."""
    listed = (item.get("status") or {}).get("conditions") or ()
    conditions = {one["type"]: one for one in listed}
    cause = conditions.get("Ready", {})
    if cause.get("status") != "False":
        return ""
    if cause.get("reason") == conditions.get("Remediated", {}).get("reason", "none"):
        cause = conditions.get("Released", cause)
    return quote_field(str(cause.get("message") or cause.get("reason") or "no reason")).rstrip(".")


def _claimed(work: Workload) -> Workload:
    """The workload with the release that its Application is named after."""
    chart = work.keeper.chart if work.keeper and not work.release else ""
    return replace(work, release=ReleaseRef(work.namespace, chart)) if chart else work


def _with_keeper(
    release: HelmRelease,
    workloads: Sequence[Workload],
    flux: Mapping[ReleaseRef, tuple[Keeper, str]],
) -> HelmRelease:
    """The release with its keeper. The record of one that Argo CD took over is out of date."""
    keepers = (work.keeper for work in release.among(workloads) if work.keeper)
    keeper = next(keepers, None)
    if keeper and keeper.tool != RECORDING:
        return _unrecorded(release.ref, release.chart, keeper, workloads)
    keeper, problem = flux.get(release.ref, (keeper, ""))
    return replace(release, keeper=keeper, problem=problem)


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
