"""What is removed from a cluster, in which order, and what stays. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.names import counted
from gpufleet.core.visible import Count
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.builder import our_releases
from gpufleet.gpu_stack.remains import ChartCrd, Leaving, Owned, PodUse, Remains, some
from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.builder import ADAPTER, DETECTOR, EXPORTER, NFD, OPERATOR, PLUGIN, STACK
from gpufleet.helm.chart_models import ChartCatalog
from gpufleet.helm.findings.releases import RELEASE_UNREADABLE
from gpufleet.helm.release import ADOPTED_LABEL, OWNER_LABEL
from gpufleet.kube.facts import ClusterFacts, HelmRelease, ObjectRef, ReleaseRef

ORDER = (DETECTOR, ADAPTER, EXPORTER, PLUGIN, NFD, OPERATOR, STACK)  # last installed first
ADVERTISING = (PLUGIN, OPERATOR)
SYSTEM = ("default", "kube-system", "kube-public", "kube-node-lease")


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
            *(f"uninstall release {one.ref} ({_chart(one)})" for one in self.releases),
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
    kept = {
        ObjectRef("RuntimeClass", "", name): others
        for name, pods in remains.classes.items()
        if (others := [pod.ref for pod in pods if pod.owner not in going])
    }
    left = tuple(one for release in releases for one in _left_by(release, facts, remains))
    objects = tuple(dict.fromkeys(one for one in (*remains.objects, *left) if one.ref not in kept))
    touched = {one.namespace for one in releases} | {one.ref.namespace for one in objects}
    stay = {name: found for name, found in remains.filled.items() if name not in touched}
    notes = [
        *_unreadable(facts),
        *_disrupted(settings, releases, remains, catalog),
        *_data_lost(releases, facts, remains),
        *(_stays(one) for one in foreign),
        *(_elsewhere(ref) for ref in remains.elsewhere),
        *(_in_use(one.ref, kept[one.ref]) for one in remains.objects if one.ref in kept),
        *(_unmarked(ref) for ref in remains.unmarked),
        *_crds_stay(releases, remains, catalog),
        *_claims_stay(remains, releases),
        *_namespaces_stay(releases, remains),
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


def _chart(found: HelmRelease) -> str:
    return f"{found.chart} {found.chart_version}"


def _installed(found: HelmRelease) -> bool:
    """Whether gpufleet installed a release: one that it took over was there before."""
    return OWNER_LABEL in found.labels and ADOPTED_LABEL not in found.labels


def _remains(found: HelmRelease) -> bool:
    return not _installed(found) and found.status != "uninstalled"


def _unreadable(facts: ClusterFacts) -> Iterator[Finding]:
    for ref, reason in sorted(facts.unreadable.items()):
        yield RELEASE_UNREADABLE(release=ref, reason=reason)


def _disrupted(
    settings: ClusterSettings,
    releases: Collection[HelmRelease],
    remains: Remains,
    catalog: ChartCatalog,
) -> Iterator[Finding]:
    """A blocker where pods have GPUs that a release to remove advertises."""
    gone = [one for one in releases if one.name in ADVERTISING]
    pods = [pod.ref for pod in remains.pods if not _validates(pod, gone, catalog)]
    if gone and pods and not settings.cluster.allow_disruption:
        yield findings.PODS_USE_GPUS(
            count=len(pods), release=f"release {gone[0].ref}", pods=some(pods, 3)
        )


def _validates(pod: PodUse, gone: Collection[HelmRelease], catalog: ChartCatalog) -> bool:
    """Whether a pod is one by which the operator tests a node."""
    spaces = {one.namespace for one in gone if one.name == OPERATOR}
    return pod.ref.namespace in spaces and pod.labels.get("app") in catalog.operands.validators


def _data_lost(
    releases: Collection[HelmRelease], facts: ClusterFacts, remains: Remains
) -> Iterator[Finding]:
    """Blockers where helm would delete data of users together with a release."""
    for one in releases:
        for claim in one.claims:
            if claim in remains.claims:
                yield findings.CLAIM_OF_RELEASE(
                    claim=f"{claim.namespace}/{claim.name}",
                    release=one.ref,
                    name=claim.name,
                    namespace=claim.namespace,
                )
        for crd in remains.crds:
            if crd.release == one.ref:
                yield from crd_of_release(crd.name, one.ref, crd.users, crd.unknown)


def crd_of_release(
    name: str, release: ReleaseRef, users: Collection[ObjectRef], unknown: str
) -> Iterator[Finding]:
    """Blockers where helm would delete objects of others with a CRD, or might."""
    if users:
        objects = some(sorted(users), 3)
        yield findings.CRD_OF_RELEASE(crd=name, release=release, count=len(users), objects=objects)
    elif unknown:
        yield findings.CRD_OF_RELEASE_UNKNOWN(crd=name, release=release, why=unknown)


def _stays(found: HelmRelease) -> Finding:
    why = "it was there before gpufleet, which took it over"
    if OWNER_LABEL not in found.labels:
        why = "it does not have the label of gpufleet's releases"
    return findings.RELEASE_STAYS(
        release=found.ref,
        chart=_chart(found),
        why=why,
        name=found.name,
        namespace=found.namespace,
    )


def _elsewhere(ref: ReleaseRef) -> Finding:
    return findings.RELEASE_ELSEWHERE(release=ref, name=ref.name, namespace=ref.namespace)


def _in_use(ref: ObjectRef, pods: Collection[ObjectRef]) -> Finding:
    return object_stays(
        ref, f"{Count(len(pods)):pod selects|pods select} it, such as {some(sorted(pods), 3)}"
    )


def _unmarked(ref: ObjectRef) -> Finding:
    return object_stays(ref, "it does not have the label of gpufleet's objects")


def object_stays(ref: ObjectRef, why: str) -> Finding:
    space = f" -n {ref.namespace}" if ref.namespace else ""
    return findings.OBJECT_STAYS(
        object=ref, why=why, target=f"{ref.kind.lower()} {ref.name}{space}"
    )


def _crds_stay(
    releases: Collection[HelmRelease], remains: Remains, catalog: ChartCatalog
) -> Iterator[Finding]:
    """CRDs with objects of others; those of others only where their chart's release goes."""
    groups = {group for one in releases for group in catalog.charts[one.name].crd_groups}
    for crd in remains.crds:
        if crd.release:
            continue
        if crd.ours and crd.users:
            yield crd_stays(crd.name, crd.users)
        elif not crd.ours and crd.name.split(".", 1)[1] in groups:
            objects = f" and has {counted(len(crd.users), 'object')} of others" if crd.users else ""
            yield findings.CRD_STAYS(
                crd=crd.name, why=f"it does not have the label of gpufleet's objects{objects}"
            )


def crd_stays(name: str, users: Collection[ObjectRef]) -> Finding:
    """`users`: objects of it that gpufleet did not create."""
    objects, shown = counted(len(users), "object"), some(sorted(users), 3)
    return findings.CRD_STAYS(
        crd=name, why=f"it has {objects} that gpufleet did not create, such as {shown}"
    )


def _claims_stay(remains: Remains, releases: Collection[HelmRelease]) -> Iterator[Finding]:
    spaces = {one.namespace for one in releases} - set(SYSTEM)
    claims = [f"{ref.namespace}/{ref.name}" for ref in remains.claims if ref.namespace in spaces]
    if claims:
        yield findings.CLAIMS_STAY(count=len(claims), claims=some(sorted(claims), 10))


def _namespaces_stay(releases: Collection[HelmRelease], remains: Remains) -> Iterator[Finding]:
    ours = {one.ref.name for one in remains.namespaces}
    for name in sorted({one.namespace for one in releases} - ours - set(SYSTEM)):
        yield findings.NAMESPACE_STAYS(
            namespace=name, why="it does not have the label of gpufleet's objects"
        )


def namespace_stays(name: str, objects: Collection[ObjectRef]) -> Finding:
    """`objects`: what it has."""
    number, shown = counted(len(objects), "object"), some(sorted(objects), 3)
    return findings.NAMESPACE_STAYS(
        namespace=name, why=f"it has {number} that gpufleet did not create, such as {shown}"
    )
