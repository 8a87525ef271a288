"""Plans the changes of a Helm release, with reasons. Pure: wanted + facts + chart."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.merge import value_at
from gpufleet.core.versions import version_tuple
from gpufleet.helm.chart import ChartContent
from gpufleet.helm.chart_values import same_values, unknown_values, values_diff
from gpufleet.helm.crds import crds_behind, plan_crds
from gpufleet.helm.findings import releases as findings
from gpufleet.helm.obstacles import find_obstacles, left_out, missing_kinds, taken_ports
from gpufleet.helm.readiness import find_notes, find_silent, find_unready, report_down
from gpufleet.helm.release import (
    STALE_SECONDS,
    Action,
    HelmVersion,
    Release,
    ReleasePlan,
    is_our_release,
)
from gpufleet.helm.strategy import HelmCatalog, helm_strategy
from gpufleet.kube.facts import ClusterFacts, HelmRelease, ObjectRef, Workload
from gpufleet.kube.keepers import Keeper
from gpufleet.kube.parse import object_ref


@dataclass(frozen=True, slots=True)
class Controller:
    """The machine that gpufleet runs on. `now`: seconds since 1970 by the API server's clock, 0 if
    unknown. `alone`: this run holds the cluster's lock, so any pending operation of another
    gpufleet run was interrupted."""

    id: str
    now: int
    helm: HelmVersion
    alone: bool = True


def plan_release(
    wanted: Release, facts: ClusterFacts, controller: Controller, catalog: HelmCatalog
) -> ReleasePlan:
    """The plan of one release, without the parts that need the chart itself.

    `with_chart` must complete a plan with changes before it is applied.
    """
    found = facts.release(wanted.namespace, wanted.name)
    if found and found.status == "uninstalled":
        found = None  # only its history remains
    action, reason, problems = _decide(wanted, found, facts, controller)
    rollback_to = None
    if found and action.startswith("repair-"):  # interrupted at revision 1: itself
        rollback_to = found.last_good or (found.revision if found.pending else None)
    plan = ReleasePlan(
        release=wanted,
        action=action,
        reason=reason,
        before=found,
        rollback_to=rollback_to,
        strategy=helm_strategy(
            controller.helm, facts.server, catalog, found, force_conflicts=wanted.force_conflicts
        ),
        findings=tuple(problems),
    )
    if not plan.changes:
        notes = find_notes(wanted, facts) if found else []
        silent = find_silent(wanted, facts)[0] if found else []
        notes += [findings.OFFERS_NOTHING(node=name, release=wanted.ref) for name in silent]
        return replace(plan, findings=(*problems, *notes))
    problems += find_obstacles(wanted, found, facts)
    return with_findings(replace(plan, diff=_diff(wanted, found)), problems)


def with_chart(
    plan: ReleasePlan,
    chart: ChartContent,
    live_crds: Mapping[str, Mapping[str, Any]],
    facts: ClusterFacts,
    catalog: HelmCatalog,
) -> ReleasePlan:
    """Complete the plan from the chart: its CRDs, and values that it does not know.

    `live_crds`: the chart's complete CRDs in the cluster, by name.
    """
    wanted = plan.release
    steps, kept = plan_crds(wanted, chart, facts, live_crds, catalog)
    unknown = unknown_values(wanted.values, chart)
    return with_findings(replace(plan, crds=tuple(steps)), [*kept, *unknown])


def with_objects(
    plan: ReleasePlan,
    objects: Sequence[Mapping[str, Any]],
    facts: ClusterFacts,
    added_apis: Collection[str] = (),
) -> ReleasePlan:
    """Complete the plan with the obstacles to the rendered objects.

    `added_apis`: "group/version" of the CRDs of releases that are applied before this one.
    """
    missing = missing_kinds(plan, objects, facts, added_apis)
    problems = [*taken_ports(plan, objects, facts), *missing, *report_down(facts.nodes)]
    problems += left_out(plan, objects, facts)
    recreate = list(recreated_workloads(plan, objects, facts))
    problems += [
        findings.RECREATED(workload=work.ref, release=plan.release.ref, pods=work.ready)
        for work in recreate
    ]
    kept = tuple(kept_objects(plan, objects, facts))
    plan = replace(plan, recreate=tuple(work.ref for work in recreate), kept=kept)
    return with_findings(plan, problems)


def with_findings(plan: ReleasePlan, found: Sequence[Finding]) -> ReleasePlan:
    """The plan with more findings. A blocker in them blocks the plan."""
    plan = replace(plan, findings=tuple(dict.fromkeys([*plan.findings, *found])))
    return replace(plan, action="blocked") if plan.blockers else plan


def _decide(
    wanted: Release, found: HelmRelease | None, facts: ClusterFacts, controller: Controller
) -> tuple[Action, str, list[Finding]]:
    unreadable = facts.unreadable.get(wanted.ref)
    if unreadable:
        problem = findings.RELEASE_UNREADABLE(release=wanted.ref, reason=unreadable)
        return "blocked", "Helm's record is unreadable", [problem]
    if found is None:
        return "install", f"release {wanted.ref} does not exist", []
    if found.chart != wanted.chart:
        chart = f"{found.chart} {found.chart_version}"
        taken = findings.NAME_TAKEN(release=wanted.ref, chart=chart, wanted=wanted.chart)
        return "blocked", "release name in use", [taken]
    if found.keeper:
        return _kept(wanted, found, found.keeper)
    if found.pending:
        return _pending(found, controller)
    if found.status != "deployed":
        return "repair-failed", f"revision {found.revision} is {found.status}", []
    if version_tuple(found.chart_version) > version_tuple(wanted.version) and not wanted.downgrade:
        newer = findings.NEWER_INSTALLED(
            release=wanted.ref,
            installed=f"{found.chart} {found.chart_version}",
            version=wanted.version,
            newer=found.chart_version,
        )
        return _steady(wanted, found, facts, [newer])
    if differences := _differences(wanted, found):
        return "upgrade", differences, []
    return _steady(wanted, found, facts, [])


def _differences(wanted: Release, found: HelmRelease) -> str:
    """What an upgrade changes, or "". A release without a record shows only its version, if any."""
    version, differences = found.chart_version.removeprefix("v"), []
    same = (version, version.partition("+")[0])  # Flux adds the digest of an archive
    if wanted.version.removeprefix("v") not in same and (version or found.revision):
        differences.append(f"chart {found.chart_version} -> {wanted.version}")
    if found.revision and not same_values(found.values, wanted.values):
        differences.append("values differ")
    return "; ".join(differences)


def _kept(wanted: Release, found: HelmRelease, keeper: Keeper) -> tuple[Action, str, list[Finding]]:
    """A release that Flux or Argo CD applies is judged, and never changed: its owner would undo
    the change."""
    differences = _differences(wanted, found)
    failed = keeper.kind == "HelmRelease" and found.status == "failed"
    problem = found.problem or (f"revision {found.revision} failed" if failed else "")
    notes = []
    if differences:
        behind = findings.RELEASE_BEHIND(
            keeper=keeper, release=wanted.ref, differences=differences, left_by=wanted.left_by
        )
        notes.append(behind)
    if problem:
        stuck = findings.KEPT_RELEASE_FAILED(
            keeper=keeper,
            release=wanted.ref,
            problem=problem,
            kind=keeper.kind.lower(),
            name=keeper.name,
            namespace=keeper.namespace or found.namespace,
        )
        notes.append(stuck)
    why = "; ".join(filter(None, (f"{keeper} applies it", differences, problem)))
    return "no-op", why, notes or [findings.RELEASE_KEPT(keeper=keeper, release=wanted.ref)]


def _steady(
    wanted: Release, found: HelmRelease, facts: ClusterFacts, problems: list[Finding]
) -> tuple[Action, str, list[Finding]]:
    """Compare the cluster with a release whose record is up to date."""
    unready = find_unready(wanted, facts)
    there = {work.ref for work in facts.workloads}
    gone = [str(ref) for ref in found.workloads if ref not in there]
    gone += [part.what for part in unready if part.missing]
    waits = [str(part) for part in unready if not part.missing]
    behind = crds_behind(wanted, found.app_version, facts)
    if problems:  # a newer release is not changed
        gone, behind = [], []
    if gone:
        return "repair", f"{', '.join(gone)} is missing", problems
    if behind:
        return "upgrade", f"CRDs are older than the chart: {', '.join(behind)}", problems
    if waits:
        return "wait", "; ".join(waits), problems
    return "no-op", f"revision {found.revision} is up to date", problems


def _pending(found: HelmRelease, controller: Controller) -> tuple[Action, str, list[Finding]]:
    known = controller.now and found.created  # both times by the server's clock
    age = max(controller.now - found.created, 0) if known else 0
    if (is_our_release(found) and controller.alone) or age >= STALE_SECONDS:
        return "repair-pending", f"an operation of helm was interrupted ({found.status})", []
    busy = findings.RELEASE_BUSY(
        release=found.ref,
        status=found.status,
        age=f"{age // 60} min {age % 60} s",
        stale=f"{STALE_SECONDS // 60} minutes",
    )
    return "blocked", "another operation is in progress", [busy]


def _diff(wanted: Release, found: HelmRelease | None) -> tuple[str, ...]:
    after = f"{wanted.chart} {wanted.version}, wanted"
    if found is None:
        return values_diff({}, wanted.values, "not installed", after)
    before = f"{found.chart} {found.chart_version}, revision {found.revision}"
    return values_diff(found.values, wanted.values, before, after)


def kept_objects(
    plan: ReleasePlan, objects: Sequence[Mapping[str, Any]], facts: ClusterFacts
) -> Iterator[ObjectRef]:
    """Volume claims and CRDs of the installed release that its rendered objects lack.

    Helm deletes what a release no longer has, with the data in it:
    https://github.com/helm/helm/issues/8163 (read 2026-11-30)
    """
    if not plan.before:
        return
    refs = [object_ref(item, plan.release.namespace) for item in objects]
    yield from (claim for claim in plan.before.claims if claim not in refs)
    rendered = {(ref.kind, ref.name) for ref in refs}  # a template may name a namespace
    for crd in facts.crds.values():
        if crd.release == plan.release.ref and (crd.ref.kind, crd.name) not in rendered:
            yield crd.ref


def recreated_workloads(
    plan: ReleasePlan, objects: Sequence[Mapping[str, Any]], facts: ClusterFacts
) -> Iterator[Workload]:
    """Workloads of the release whose selector differs from the rendered object's.

    spec.selector is immutable, so the workload must be recreated.
    """
    there = {work.ref: work for work in facts.workloads_of(plan.release.ref)}
    for item in objects:
        work = there.get(object_ref(item, plan.release.namespace))
        selector = value_at(item, "spec.selector.matchLabels") or {}
        if work and dict(work.selector) != dict(selector):
            yield work
