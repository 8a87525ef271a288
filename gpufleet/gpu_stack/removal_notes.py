"""What stays at a removal, or stops it: its findings. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gpufleet.core.findings import Finding
from gpufleet.core.names import counted
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.remains import PodUse, Remains, some
from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.builder import OPERATOR, PLUGIN
from gpufleet.helm.chart_models import ChartCatalog
from gpufleet.helm.findings.releases import RELEASE_UNREADABLE
from gpufleet.helm.release import is_ours
from gpufleet.kube.facts import ClusterFacts, HelmRelease, ObjectRef, ReleaseRef

ADVERTISING = (PLUGIN, OPERATOR)
SYSTEM = ("default", "kube-system", "kube-public", "kube-node-lease")


def unreadable_releases(facts: ClusterFacts) -> Iterator[Finding]:
    for ref, reason in sorted(facts.unreadable.items()):
        yield RELEASE_UNREADABLE(release=ref, reason=reason)


def disrupted_pods(
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


def lost_data(
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


def release_stays(found: HelmRelease) -> Finding:
    why = "it was there before gpufleet, which took it over"
    if not is_ours(found):
        why = "it does not have the label of gpufleet's releases"
    return findings.RELEASE_STAYS(
        release=found.ref,
        chart=f"{found.chart} {found.chart_version}",
        why=why,
        name=found.name,
        namespace=found.namespace,
    )


def release_elsewhere(ref: ReleaseRef) -> Finding:
    return findings.RELEASE_ELSEWHERE(release=ref, name=ref.name, namespace=ref.namespace)


def unmarked_stays(ref: ObjectRef) -> Finding:
    return object_stays(ref, "it does not have the label of gpufleet's objects")


def object_stays(ref: ObjectRef, why: str) -> Finding:
    space = f" -n {ref.namespace}" if ref.namespace else ""
    return findings.OBJECT_STAYS(
        object=ref, why=why, target=f"{ref.kind.lower()} {ref.name}{space}"
    )


def crds_stay(
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


def claims_stay(remains: Remains, releases: Collection[HelmRelease]) -> Iterator[Finding]:
    spaces = {one.namespace for one in releases} - set(SYSTEM)
    claims = [f"{ref.namespace}/{ref.name}" for ref in remains.claims if ref.namespace in spaces]
    if claims:
        yield findings.CLAIMS_STAY(count=len(claims), claims=some(sorted(claims), 10))


def namespaces_stay(releases: Collection[HelmRelease], remains: Remains) -> Iterator[Finding]:
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
