"""What is removed from a cluster, in which order, and what stays. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.visible import Count
from gpufleet.gpu_stack.builder import our_releases
from gpufleet.gpu_stack.remains import ChartCrd, Leaving, Owned, Remains, some
from gpufleet.gpu_stack.removal_notes import (
    claims_stay,
    crds_stay,
    disrupted_pods,
    lost_data,
    namespace_stays,
    namespaces_stay,
    object_stays,
    release_elsewhere,
    release_stays,
    unmarked_stays,
    unreadable_releases,
)
from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.builder import ADAPTER, DETECTOR, EXPORTER, NFD, OPERATOR, PLUGIN, STACK
from gpufleet.helm.chart_models import ChartCatalog
from gpufleet.helm.release import ADOPTED_LABEL, is_ours
from gpufleet.kube.facts import ClusterFacts, HelmRelease, ObjectRef
from gpufleet.monitoring.prometheus_stack import GRAFANA_SECRET

ORDER = (DETECTOR, ADAPTER, EXPORTER, PLUGIN, NFD, OPERATOR, STACK)  # last installed first


@dataclass(frozen=True, slots=True)
class StackRemoval:
    """What gpufleet installed in a cluster. `foreign`: releases under its names that it did not
    install; they stay. Of `crds` and `namespaces` those go that nothing of others needs by then.
    `emptied`: namespaces that are empty, or from which this removal takes something.
    """

    releases: tuple[HelmRelease, ...] = ()  # in the order of their removal
    foreign: tuple[HelmRelease, ...] = ()
    objects: tuple[Owned, ...] = ()
    left: tuple[Owned, ...] = ()  # of them, those that the releases leave behind
    nodes: tuple[tuple[str, str], ...] = ()  # node, label that gpufleet set
    crds: tuple[ChartCrd, ...] = ()
    templated: tuple[ChartCrd, ...] = ()  # CRDs that helm deletes with their releases
    namespaces: tuple[Owned, ...] = ()
    emptied: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    def release(self, name: str) -> HelmRelease | None:
        """The release of that name, where it is to go."""
        return next((found for found in self.releases if found.name == name), None)

    def of_kind(self, *kinds: str) -> tuple[Owned, ...]:
        """The objects of these kinds that are to go."""
        return tuple(found for found in self.objects if found.ref.kind in kinds)

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """What stops the cluster before anything is removed."""
        return tuple(finding for finding in self.findings if finding.blocks)

    @property
    def movements(self) -> dict[str, dict[str, str | None]]:
        """Release -> its chart's version before and after, for the report."""
        return {
            one.name: {
                "before": one.chart_version,
                "after": one.chart_version if one in self.foreign else None,
            }
            for one in (*self.releases, *self.foreign)
        }

    def describe(self) -> dict[str, Any]:
        """The plan as data for the JSON report."""
        return {
            "steps": self.steps(),
            "releases": [str(found.ref) for found in self.releases],
            "objects": [str(found.ref) for found in self.objects],
            "crds": [found.name for found in self.crds],
            "namespaces": [found.ref.name for found in self.namespaces],
        }

    def steps(self) -> list[str]:
        """The steps as one sentence each."""
        nodes = ", ".join(name for name, _ in self.nodes)
        return [
            *(
                f"uninstall release {one.ref} ({one.chart} {one.chart_version})"
                for one in self.releases
            ),
            *(f"delete {found.ref}" for found in self.objects),
            *([f"remove gpufleet's label from nodes {nodes}"] if nodes else []),
            *(f"delete CRD {one.name}" for one in self.crds),
            *(f"delete namespace {name} if it is empty" for name in self.emptied),
        ]


def plan_stack_removal(
    settings: ClusterSettings, facts: ClusterFacts, remains: Remains, catalog: ChartCatalog
) -> StackRemoval:
    """What to remove from one cluster; raises nothing, reports findings."""
    there = {ref.name: facts.release(ref.namespace, ref.name) for ref in our_releases(settings)}
    found = [there[name] for name in ORDER]
    releases = tuple(one for one in found if one and _installed(one))
    foreign = tuple(one for one in found if one and _remains(one))
    going = {work.ref for one in releases for work in facts.workloads_of(one.ref)}
    kept = {**_selected_classes(remains, going), **_password(remains)}
    left = tuple(one for release in releases for one in _left_by(release, facts, remains))
    objects = tuple(dict.fromkeys(one for one in (*remains.objects, *left) if one.ref not in kept))
    touched = {one.namespace for one in releases} | {one.ref.namespace for one in objects}
    stay = {name: found for name, found in remains.filled.items() if name not in touched}
    notes = [
        *unreadable_releases(facts),
        *disrupted_pods(settings, releases, remains, catalog),
        *lost_data(releases, facts, remains),
        *(release_stays(one) for one in foreign),
        *(release_elsewhere(ref) for ref in remains.elsewhere),
        *(object_stays(one.ref, kept[one.ref]) for one in remains.objects if one.ref in kept),
        *(unmarked_stays(ref) for ref in remains.unmarked),
        *crds_stay(releases, remains, catalog),
        *claims_stay(remains, releases),
        *namespaces_stay(releases, remains),
        *(namespace_stays(name, found) for name, found in sorted(stay.items()) if found),
    ]
    return StackRemoval(
        releases=releases,
        foreign=foreign,
        objects=objects,
        left=left,
        nodes=tuple(sorted(remains.nodes.items())),
        crds=tuple(one for one in remains.crds if one.ours and not one.release and not one.users),
        templated=tuple(one for one in remains.crds if one.release),
        namespaces=remains.namespaces,
        emptied=tuple(
            one.ref.name
            for one in remains.namespaces
            if one.ref.name in touched or not remains.filled.get(one.ref.name)
        ),
        findings=tuple(dict.fromkeys(notes)),
    )


def leaving_of(settings: ClusterSettings, facts: ClusterFacts, catalog: ChartCatalog) -> Leaving:
    """What goes with gpufleet's releases, those that are removed already among them."""
    there = {ref: facts.release(ref.namespace, ref.name) for ref in our_releases(settings)}
    owners: dict[str, frozenset[str]] = {}
    for chart in catalog.charts.values():
        for kind in chart.object_owners:
            own = kind.partition(".")[2] in chart.crd_groups
            groups = frozenset({""} if own else chart.crd_groups)
            owners[kind] = owners.get(kind, frozenset()) | groups
    return Leaving(
        releases=tuple(ref for ref, one in there.items() if one is None or not _remains(one)),
        owners=owners,
    )


def _left_by(release: HelmRelease, facts: ClusterFacts, remains: Remains) -> Iterator[Owned]:
    """What a release leaves behind; outside its namespace only if no other release has its name,
    which may have created it too."""
    names = {work.release for work in facts.workloads if work.release}
    alone = all(ref == release.ref for ref in names if ref.name == release.name)
    for one in remains.left.get(release.chart, ()):
        if alone or one.ref.namespace == release.namespace:
            yield one


def _installed(found: HelmRelease) -> bool:
    """Whether gpufleet installed a release: one that it took over was there before."""
    return is_ours(found) and ADOPTED_LABEL not in found.labels


def _remains(found: HelmRelease) -> bool:
    return not _installed(found) and found.status != "uninstalled"


def _selected_classes(remains: Remains, going: Collection[ObjectRef]) -> dict[ObjectRef, str]:
    """RuntimeClasses that pods of others select, and why they stay. `going`: workloads that go."""
    return {
        ObjectRef("RuntimeClass", "", name): f"{Count(len(pods)):pod selects|pods select} it, such "
        f"as {some(sorted(pods), 3)}"
        for name, users in remains.classes.items()
        if (pods := [pod.ref for pod in users if pod.owner not in going])
    }


def _password(remains: Remains) -> dict[ObjectRef, str]:
    """The Secrets with Grafana's password that stay with its database, and why."""
    spaces = {claim.namespace for claim in remains.claims}
    why = "a PersistentVolumeClaim in its namespace may hold Grafana's database, which has this "
    return {
        one.ref: f"{why}password"
        for one in remains.objects
        if (one.ref.kind, one.ref.name) == ("Secret", GRAFANA_SECRET)
        and one.ref.namespace in spaces
    }
