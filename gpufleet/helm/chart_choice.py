"""Choose chart versions for a cluster, each with its reason. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from gpufleet.core.entries import entry_loader
from gpufleet.core.findings import Finding
from gpufleet.core.merge import merge_mappings
from gpufleet.core.versions import version_tuple
from gpufleet.helm.chart_models import Break, Chart, ChartCatalog, Pick
from gpufleet.helm.findings import charts as findings

Policy = Literal["careful", "newest"]


@dataclass(frozen=True, slots=True)
class ChartChoice:
    """The chosen version of a chart for one cluster.

    `checked`: how it was tested. `values`: values required for compatibility.
    """

    chart: str
    version: str
    repository: str
    reason: str
    checked: str
    values: Mapping[str, Any]
    findings: tuple[Finding, ...]


load_charts = entry_loader(ChartCatalog, "helm/charts")


def kubernetes_minor(version: str) -> str:
    """The minor of v1.24.17-eks-036c24b: 1.24. Raises ValueError for an invalid version."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    if not found:
        raise ValueError(f"{version!r} is not a Kubernetes version")
    return f"{found[1]}.{found[2]}"


def cluster_findings(catalog: ChartCatalog, kubernetes: str, today: date) -> list[Finding]:
    """Findings about the cluster's version itself."""
    minor = kubernetes_minor(kubernetes)
    if minor not in catalog.kubernetes:
        known, near = list(catalog.kubernetes), _nearest(catalog, minor)
        return [
            findings.UNKNOWN_KUBERNETES(minor=minor, first=known[0], last=known[-1], nearest=near)
        ]
    end = catalog.kubernetes[minor]
    return [findings.KUBERNETES_ENDED(minor=minor, date=end)] if end < today else []


def choose_charts(
    catalog: ChartCatalog,
    kubernetes: str,
    policy: Policy = "careful",
    pins: Mapping[str, str] | None = None,
) -> dict[str, ChartChoice]:
    """Choose a version of every chart for a cluster. Returns chart -> choice.

    `kubernetes`: the server's version or minor, without vendor suffix. For a minor that is not in
    the catalog, the nearest one is used. `pins`: versions that the user sets. An incompatible pin
    is a blocker in the findings of its choice.
    """
    minor = _nearest(catalog, kubernetes_minor(kubernetes))
    pinned = pins or {}
    return {
        name: _choose(name, chart, minor, policy, pinned.get(name))
        for name, chart in catalog.charts.items()
    }


def has_feature(catalog: ChartCatalog, chart: str, version: str, feature: str) -> bool:
    """True if a version of a chart has a value, and the value works. Values without an entry exist
    in all versions."""
    found = catalog.charts[chart]
    since, lost = found.features.get(feature), found.lost_features.get(feature)
    if lost and version_tuple(version) >= version_tuple(lost):
        return False
    return since is None or version_tuple(version) >= version_tuple(since)


def memory_limit(catalog: ChartCatalog, chart: str, gpus: int | None, set_before: str = "") -> str:
    """The memory limit for nodes with up to `gpus` GPUs, or "" if the catalog has none.

    `gpus`: None if unknown, which counts as the maximum. `set_before`: the limit of the installed
    release. It is never lowered, and is kept while the number is unknown.
    """
    limits = [entry.limit for entry in catalog.charts[chart].memory]
    if not limits:
        return ""
    known = set_before in limits
    if gpus is None:
        return set_before if known else limits[-1]
    enough = [entry.limit for entry in catalog.charts[chart].memory if entry.gpus <= max(gpus, 1)]
    return max(enough[-1], set_before if known else limits[0], key=limits.index)


def _choose(name: str, chart: Chart, minor: str, policy: Policy, pin: str | None) -> ChartChoice:
    picks = [one for one in chart.picks if version_tuple(one.from_) <= version_tuple(minor)]
    pick = picks[-1]
    version, reason = pick.version, pick.why
    if pin:
        known = {name.removeprefix("v"): name for name in chart.installed}  # as the index writes it
        version = known.get(pin.removeprefix("v"), pin)
        reason = f"pinned; the catalog's choice is {pick.version}"
    elif policy == "newest":
        version, reason = _newest(chart, minor, pick)
    hits = [hit for hit in chart.breaks if _hits(hit, version, minor)]
    allowed = policy == "newest"
    values: dict[str, Any] = {}
    for hit in hits:
        values = merge_mappings(values, hit.values if allowed else {})
    problems = [
        *_blockers(name, version, minor, hits, allowed),
        *_remarks(name, chart, version, minor),
    ]
    checked = _checked(chart, version, minor, values)
    if any(finding.blocks for finding in problems):
        checked = f"known not to install on {minor}"
    return ChartChoice(name, version, chart.repository, reason, checked, values, tuple(problems))


def _newest(chart: Chart, minor: str, careful: Pick) -> tuple[str, str]:
    """The newest version that the API accepts, and values if it requires some."""
    for version in sorted(chart.installed, key=version_tuple, reverse=True):
        hits = [hit for hit in chart.breaks if _hits(hit, version, minor)]
        if all(hit.values for hit in hits):
            if version == careful.version:
                break
            more = " with values that disable unsupported fields" if hits else ""
            return version, f"the newest that the API of {minor} accepts{more}"
    return careful.version, careful.why


def _blockers(
    name: str, version: str, minor: str, hits: list[Break], allowed: bool
) -> Iterator[Finding]:
    what: dict[str, Any] = {"chart": name, "version": version, "minor": minor}
    made_to_fit = [hit for hit in hits if hit.values and allowed]
    for hit in made_to_fit:
        yield findings.CHART_MADE_TO_FIT(**what, error=hit.error)
    if stopping := [hit for hit in hits if hit not in made_to_fit]:
        way = ' or set cluster_charts = "newest", which passes values that avoid it'
        yield findings.CHART_DOES_NOT_FIT(
            **what,
            error="; ".join(dict.fromkeys(hit.error for hit in stopping)),
            last=min((hit.last for hit in stopping), key=version_tuple),
            way=way if all(hit.values for hit in stopping) else "",
        )


def _remarks(name: str, chart: Chart, version: str, minor: str) -> Iterator[Finding]:
    asked, number = version_tuple(minor), version_tuple(version)
    said = [entry for entry in chart.documented if version_tuple(entry.since) <= number][-1:]
    for entry in said:
        if not version_tuple(entry.first) <= asked <= version_tuple(entry.last or "99"):
            last = f" to {entry.last}" if entry.last else " and newer"
            why = f"documented for Kubernetes {entry.first}{last}, not for {minor}"
            yield findings.CHART_UNTESTED(chart=name, version=version, why=why)
    newest = max((*chart.installed, *(pick.version for pick in chart.picks)), key=version_tuple)
    if version_tuple(version) > version_tuple(newest):
        why = f"newer than {newest}, the newest version in the catalog"
        yield findings.CHART_UNTESTED(chart=name, version=version, why=why)


def _hits(hit: Break, version: str, minor: str) -> bool:
    number = version_tuple(version)
    if version_tuple(minor) >= version_tuple(hit.below) or number < version_tuple(hit.since):
        return False
    return hit.until is None or number < version_tuple(hit.until)


def _checked(chart: Chart, version: str, minor: str, values: Mapping[str, Any]) -> str:
    """How that version was tested on that minor."""
    on = chart.installed.get(version, {})
    if minor in on:
        how = " with the values given" if values else ""
        return (
            f"installed{how} on an API server of {minor}: every object accepted, "
            f"{on[minor]} simulated pods ran; images were not run"
        )
    if on:
        near = min(on, key=lambda known: abs(version_tuple(known)[1] - version_tuple(minor)[1]))
        return f"inferred: not installed on {minor}; on {near} every object was accepted"
    return "not installed anywhere by gpufleet's authors"


def _nearest(catalog: ChartCatalog, minor: str) -> str:
    """The minor itself, or the nearest one in the catalog."""
    known = list(catalog.kubernetes)
    if minor in known:
        return minor
    return known[0] if version_tuple(minor) < version_tuple(known[0]) else known[-1]
