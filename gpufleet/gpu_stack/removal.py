"""Plans what to remove from a cluster, and in which order. Pure.

gpufleet's releases are uninstalled, and objects with its label are deleted. CRDs, namespaces and
claims stay, because deleting one deletes everything in it. A finding has the commands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.names import list_names
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.model import NODE_MARK, our_releases
from gpufleet.gpu_stack.node_sharing import OWN_LABELS
from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.builder import DRA, OPERATOR, PLUGIN, STACK
from gpufleet.helm.findings.releases import RELEASE_UNREADABLE
from gpufleet.helm.release import is_our_release
from gpufleet.kube.facts import ClusterFacts, HelmRelease, ObjectRef, ReleaseRef
from gpufleet.kube.helm_releases import ADOPTED_LABEL
from gpufleet.kube.node_answers import uses_gpus
from gpufleet.monitoring.prometheus_stack import GRAFANA_SECRET

Item = Mapping[str, Any]

ADVERTISING = (PLUGIN, DRA, OPERATOR)
NO_LONGER_WANTED = "gpufleet installed it, and the inventory no longer asks for it"
KEPT_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
MAX_SHOWN_OBJECTS = 3  # objects that a finding names
SHORT_KINDS = {"CustomResourceDefinition": "crd"}  # for kubectl


@dataclass(frozen=True, slots=True)
class Owned:
    """An object with gpufleet's label. `path`: its path in the API."""

    ref: ObjectRef
    path: str


@dataclass(frozen=True, slots=True)
class Remains:
    """The objects that a removal must consider. `objects`: with gpufleet's label. `shared`: CRDs,
    RuntimeClasses and namespaces with that label. `nodes`: node -> the label that gpufleet set.
    `left`: chart -> objects of its programs that helm does not delete. `pods`: all of the cluster.
    `elsewhere`: releases with gpufleet's label in namespaces that the settings do not name.
    `users`: CRD of a release -> its objects that neither gpufleet nor that release created."""

    objects: tuple[Owned, ...] = ()
    shared: tuple[ObjectRef, ...] = ()
    nodes: Mapping[str, str] = field(default_factory=dict)
    claims: tuple[ObjectRef, ...] = ()
    left: Mapping[str, tuple[ObjectRef, ...]] = field(default_factory=dict)
    pods: Sequence[Item] = ()
    elsewhere: tuple[ReleaseRef, ...] = ()
    users: Mapping[str, tuple[ObjectRef, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StackRemoval:
    """The plan of a removal. `foreign`: releases with gpufleet's names that it did not install;
    they stay."""

    releases: tuple[HelmRelease, ...] = ()  # in the order of their removal
    foreign: tuple[HelmRelease, ...] = ()
    objects: tuple[Owned, ...] = ()
    nodes: tuple[tuple[str, str], ...] = ()  # node, label that gpufleet set
    findings: tuple[Finding, ...] = ()

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """The findings that stop the removal before it changes anything."""
        return tuple(finding for finding in self.findings if finding.blocks)

    @property
    def movements(self) -> dict[str, dict[str, str | None]]:
        """Release -> its chart's version before and after, for the report."""
        gone = {one.name: {"before": one.chart_version, "after": None} for one in self.releases}
        return gone | {
            one.name: dict.fromkeys(("before", "after"), one.chart_version) for one in self.foreign
        }

    def describe(self) -> dict[str, Any]:
        """The plan as data for the JSON report."""
        nodes = ", ".join(dict.fromkeys(name for name, _ in self.nodes))
        return {
            "steps": [
                *(
                    f"uninstall release {each.ref} ({each.chart} {each.chart_version})"
                    for each in self.releases
                ),
                *(f"delete {each.ref}" for each in self.objects),
                *([f"remove gpufleet's label from nodes {nodes}"] if nodes else []),
            ],
            "releases": [str(each.ref) for each in self.releases],
            "objects": [str(each.ref) for each in self.objects],
        }


def plan_stack_removal(
    settings: ClusterSettings, facts: ClusterFacts, remains: Remains
) -> StackRemoval:
    """Plan the removal from one cluster. Problems are reported as findings, not raised."""
    there = [facts.release(ref.namespace, ref.name) for ref in reversed(our_releases(settings))]
    releases = tuple(found for found in there if found and is_release_installed(found))
    foreign = tuple(
        found
        for found in there
        if found and not is_release_installed(found) and found.status != "uninstalled"
    )
    spaces = {claim.namespace for claim in remains.claims}
    read = {found.namespace for found in foreign if found.name == STACK}  # Secrets, by its pods
    objects = [
        each
        for each in remains.objects
        if each.ref.kind != "Secret" or each.ref.namespace not in read
    ]
    passwords = [  # kept: a claim may hold Grafana's database with it
        each for each in objects if each.ref.name == GRAFANA_SECRET and each.ref.namespace in spaces
    ]
    notes = [
        *(RELEASE_UNREADABLE(release=ref, reason=why) for ref, why in facts.unreadable.items()),
        *_disrupted(settings, releases, remains),
        *_lost(releases, facts, remains),
        *_staying(foreign, remains.elsewhere),
    ]
    if not any(note.blocks for note in notes):
        notes += _left(releases, remains, [each.ref for each in passwords])
    return StackRemoval(
        releases=releases,
        foreign=foreign,
        objects=tuple(each for each in objects if each not in passwords),
        nodes=tuple(sorted({*remains.nodes.items(), *_config_labels(facts)})),
        findings=tuple(dict.fromkeys(notes)),
    )


def is_release_installed(found: HelmRelease) -> bool:
    """True if gpufleet installed a release. A release that it adopted existed before. What Flux or
    Argo CD applies would come back."""
    return is_our_release(found) and ADOPTED_LABEL not in found.labels and not found.keeper


def left_releases(
    settings: ClusterSettings, facts: ClusterFacts, wanted: Collection[ReleaseRef]
) -> Iterator[Finding]:
    """A finding for each release that gpufleet installed and that the plan no longer contains."""
    for ref in our_releases(settings):
        found = None if ref in wanted else facts.release(ref.namespace, ref.name)
        if found and found.status != "uninstalled" and is_release_installed(found):
            yield _release_stays(ref, NO_LONGER_WANTED)
    for ref in sorted({*facts.own_releases} - {*our_releases(settings)}):
        yield _release_stays(ref, NO_LONGER_WANTED)


def _disrupted(
    settings: ClusterSettings, releases: Collection[HelmRelease], remains: Remains
) -> Iterator[Finding]:
    """A blocker if pods use GPUs that a release to remove advertises. The operator's own pods,
    which test nodes, do not count."""
    gone = [each for each in releases if each.name in ADVERTISING]
    tests = {each.namespace for each in gone if each.name == OPERATOR}
    claims = any(each.name == DRA for each in gone)
    pods = [
        ref_of(pod, "Pod")
        for pod in remains.pods
        if uses_gpus(pod, claims=claims) and pod["metadata"].get("namespace") not in tests
    ]
    if gone and pods and not settings.cluster.allow_disruption:
        yield findings.PODS_USE_GPUS(
            count=len(pods),
            release=f"release {gone[0].ref}",
            pods=list_names([*map(str, pods)], MAX_SHOWN_OBJECTS),
        )


def _lost(
    releases: Iterable[HelmRelease], facts: ClusterFacts, remains: Remains
) -> Iterator[Finding]:
    """Blockers for releases with which helm would delete data, or objects that it did not
    create."""
    for release in releases:
        claims = [claim for claim in release.claims if claim in remains.claims]
        crds = [name for name in remains.users if facts.crds[name].release == release.ref]
        of_crds = [ref for name in crds for ref in remains.users[name]]
        if claims or of_crds:
            parts = [*map(str, claims), *(f"CRD {name}" for name in crds if remains.users[name])]
            yield findings.HELM_WOULD_DELETE(
                release=release.ref,
                parts=", ".join(parts),
                objects=list_names([*map(str, (*claims, *of_crds))], MAX_SHOWN_OBJECTS),
                count=len(claims) + len(of_crds),
            )


def _staying(foreign: Iterable[HelmRelease], elsewhere: Iterable[ReleaseRef]) -> Iterator[Finding]:
    for found in foreign:
        why, removal = "it was there before gpufleet, which took it over", ""
        if found.keeper:
            why, removal = f"{found.keeper} applies it", "remove it from the files that it reads"
        elif not is_our_release(found):
            why = "it does not have the label of gpufleet's releases"
        yield _release_stays(found.ref, why, removal)
    for ref in elsewhere:
        why = "the inventory names another namespace, in monitoring_namespace, "
        why += "device_plugin_namespace, device_plugin_nfd_namespace, device_plugin_dra_namespace "
        why += "or gpu_operator_namespace"
        yield _release_stays(ref, why)


def _release_stays(ref: ReleaseRef, why: str, removal: str = "") -> Finding:
    removal = removal or f"`helm uninstall {ref.name} -n {ref.namespace}`"
    return findings.RELEASE_STAYS(release=ref, why=why, removal=removal)


def _left(
    releases: Collection[HelmRelease], remains: Remains, passwords: Collection[ObjectRef]
) -> Iterator[Finding]:
    """A finding with the commands to delete the objects that a removal leaves."""
    spaces = {each.namespace for each in releases} - set(KEPT_NAMESPACES)
    spaces |= {each.name for each in remains.shared if each.kind == "Namespace"}
    claims = [each for each in remains.claims if each.namespace in spaces]
    left = [each for one in releases for each in remains.left.get(one.chart, ())]
    objects = [*claims, *left, *passwords, *remains.shared]
    names: dict[tuple[str, str], list[str]] = {}
    for each in objects:
        names.setdefault((each.kind, each.namespace), []).append(each.name)
    commands = [
        f"kubectl delete {SHORT_KINDS.get(kind, kind.lower())} {' '.join(known)}"
        + (f" -n {space}" if space else "")
        for (kind, space), known in names.items()
    ]
    if commands:
        yield findings.LEFT_IN_CLUSTER(objects=len(objects), commands="; ".join(commands))


def ref_of(item: Item, kind: str) -> ObjectRef:
    """The reference to an item of a list; such an item does not contain its kind."""
    about = item["metadata"]
    return ObjectRef(kind, str(about.get("namespace") or ""), str(about["name"]))


def marked_nodes(items: Iterable[Item]) -> dict[str, str]:
    """Node -> the label that gpufleet set."""
    marks = {
        str(item["metadata"]["name"]): (item["metadata"].get("annotations") or {}).get(NODE_MARK)
        for item in items
    }
    return {name: str(label) for name, label in marks.items() if label}


def _config_labels(facts: ClusterFacts) -> list[tuple[str, str]]:
    """The nodes for which gpufleet chose how they offer GPUs, with the label that says so."""
    return [
        (node.name, label)
        for node in facts.nodes
        for label in node.own_labels
        if label in OWN_LABELS
    ]
