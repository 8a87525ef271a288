"""What gpufleet created in a cluster, and who uses it: types, and how responses become them. Pure.

Releases have a label on their Secrets; all else has the label OURS, or on nodes an annotation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpufleet.gpu_stack.model import NODE_MARK
from gpufleet.kube.facts import ObjectRef, ReleaseRef
from gpufleet.kube.objects import OURS
from gpufleet.kube.parse import release_of

Item = Mapping[str, Any]

# label of what a release leaves behind; set before the release goes
LEFT = {"gpufleet-left-behind": "true"}
# Kubernetes creates these in every namespace, or removes them after what they belong to.
_AUTOMATIC = {
    ("ServiceAccount", "default"),
    ("ConfigMap", "kube-root-ca.crt"),
}
_AUTOMATIC_KINDS = ("Event", "Lease", "Endpoints", "EndpointSlice")
_TOKEN_OF = "kubernetes.io/service-account.name"  # annotation of a service account's token


@dataclass(frozen=True, slots=True)
class Owned:
    """An object that gpufleet created outside releases. `path`: its own, in the API."""

    ref: ObjectRef
    path: str


@dataclass(frozen=True, slots=True)
class ChartCrd:
    """A CRD that belongs to one of the charts. `ours`: gpufleet created it; `path`: its own, in
    the API; `users`: objects of it that gpufleet did not create; `unknown`: why it is not known
    whether there are some. `release`: whose templates define it: helm deletes it with that
    release."""

    name: str
    path: str
    ours: bool
    users: tuple[ObjectRef, ...] = ()
    unknown: str = ""
    release: ReleaseRef | None = None


@dataclass(frozen=True, slots=True)
class Leaving:
    """What goes with the releases of a removal. `releases`: those whose objects helm deletes, or
    deleted; not those that stay. `owners`: kinds ("DaemonSet.apps") whose objects own what the
    programs of charts create, such as an operator's policy or a worker's pod -> API groups of the
    CRDs of which they create objects, "" for any."""

    releases: tuple[ReleaseRef, ...] = ()
    owners: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def deletes(self, crd: str, item: Item) -> bool:
        """Whether an object of a CRD is being deleted, or goes with a release: all its owners are
        of `owners`, in a namespace of a release. Owned by anything else, it is a user's."""
        about = item["metadata"]
        if about.get("deletionTimestamp"):
            return True
        spaces = {release.namespace for release in self.releases}
        owners = {_kind_of(owner) for owner in about.get("ownerReferences") or ()}
        groups = {"", crd.partition(".")[2]}
        ours = all(groups & self.owners.get(kind, frozenset()) for kind in owners)
        return bool(owners) and ours and about.get("namespace") in spaces


def _kind_of(owner: Item) -> str:
    """The kind of an owner, with its API group."""
    group = str(owner.get("apiVersion")).rpartition("/")[0]
    return f"{owner.get('kind')}.{group}" if group else str(owner.get("kind"))


@dataclass(frozen=True, slots=True)
class PodUse:
    """A pod that has GPUs, or selects a RuntimeClass. `owner`: its controller."""

    ref: ObjectRef
    labels: Mapping[str, str] = field(default_factory=dict)
    owner: ObjectRef | None = None


@dataclass(frozen=True, slots=True)
class Remains:
    """What is there. `left`: chart -> objects that helm would not delete with its release.
    `unmarked`: objects under gpufleet's names without its label. `filled`: namespace of gpufleet's
    without a release -> its objects. `classes`: RuntimeClass -> pods that select it. `elsewhere`:
    releases with gpufleet's label in namespaces that the settings do not name."""

    objects: tuple[Owned, ...] = ()
    left: Mapping[str, tuple[Owned, ...]] = field(default_factory=dict)
    unmarked: tuple[ObjectRef, ...] = ()
    nodes: Mapping[str, str] = field(default_factory=dict)  # node -> label that gpufleet set
    namespaces: tuple[Owned, ...] = ()
    filled: Mapping[str, tuple[ObjectRef, ...]] = field(default_factory=dict)
    crds: tuple[ChartCrd, ...] = ()
    pods: tuple[PodUse, ...] = ()  # that have GPUs
    classes: Mapping[str, tuple[PodUse, ...]] = field(default_factory=dict)
    claims: tuple[ObjectRef, ...] = ()
    elsewhere: tuple[ReleaseRef, ...] = ()


def ref_of(item: Item, kind: str = "") -> ObjectRef:
    """`kind`: for items of typed lists, which have none."""
    about = item["metadata"]
    name, namespace = str(about["name"]), str(about.get("namespace") or "")
    return ObjectRef(kind or str(item.get("kind") or ""), namespace, name)


def owned(kind: str, collection: str, items: Iterable[Item]) -> tuple[Owned, ...]:
    """Those with gpufleet's label. `collection`: path of the list, of one namespace or of none."""
    return tuple(
        Owned(ref_of(item, kind), f"{collection}/{item['metadata']['name']}")
        for item in items
        if is_ours(item)
    )


def is_ours(item: Item) -> bool:
    """Whether gpufleet created it, or one of its releases left it behind."""
    labels = item["metadata"].get("labels") or {}
    return any(
        all(labels.get(key) == value for key, value in mark.items()) for mark in (OURS, LEFT)
    )


def users_of(crd: str, kind: str, items: Iterable[Item], leaving: Leaving) -> tuple[ObjectRef, ...]:
    """Objects of a CRD that neither gpufleet nor one of the releases to remove created."""
    return tuple(
        ref_of(item, kind)
        for item in items
        if not is_ours(item)
        and release_of(item) not in leaving.releases
        and not leaving.deletes(crd, item)
    )


def marked_nodes(items: Iterable[Item]) -> dict[str, str]:
    """Node -> the label that gpufleet set and that it still has."""
    found = {}
    for item in items:
        about = item["metadata"]
        label = (about.get("annotations") or {}).get(NODE_MARK)
        if label:
            found[str(about["name"])] = str(label)
    return found


def gpu_pods(items: Iterable[Item], resource: str) -> tuple[PodUse, ...]:
    """Pods on nodes that have GPUs, shared GPUs or MIG devices. `resource`: nvidia.com/gpu."""
    return tuple(
        _pod(item)
        for item in items
        if item["spec"].get("nodeName")
        and not _has_ended(item)
        and any(is_gpu(name, resource) for name in _limits(item["spec"]))
    )


def _pod(item: Item) -> PodUse:
    about = item["metadata"]
    owner = next((one for one in about.get("ownerReferences") or () if one.get("controller")), None)
    space = str(about.get("namespace") or "")
    made = ObjectRef(str(owner["kind"]), space, str(owner["name"])) if owner else None
    return PodUse(ref_of(item, "Pod"), about.get("labels") or {}, made)


def is_gpu(name: str, resource: str) -> bool:
    """Whether a node's resource is GPUs, shared GPUs or MIG devices; nvidia.com/hostdev is not."""
    mig = f"{resource.split('/')[0]}/mig-"
    return name == resource or name.startswith((f"{resource}.", mig))


def has_gpus(resources: Mapping[str, int], resource: str) -> bool:
    """Whether a node's resources have GPUs in one of these forms."""
    return any(count and is_gpu(name, resource) for name, count in resources.items())


def _has_ended(pod: Item) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _limits(spec: Item) -> set[str]:
    """Names of the resources that the containers of a pod have."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return {
        name
        for container in containers
        for name, count in ((container.get("resources") or {}).get("limits") or {}).items()
        if str(count) != "0"
    }


def runtime_classes(items: Iterable[Item]) -> dict[str, tuple[PodUse, ...]]:
    """RuntimeClass -> the pods that select it and have not ended."""
    found: dict[str, list[PodUse]] = {}
    for item in items:
        name = item["spec"].get("runtimeClassName")
        if name and not _has_ended(item):
            found.setdefault(str(name), []).append(_pod(item))
    return {name: tuple(pods) for name, pods in found.items()}


def is_leaving(item: Item) -> bool:
    """Whether an object of a namespace is being deleted, or goes with its owner, which is in the
    same namespace if a namespace has it."""
    about = item["metadata"]
    token = (about.get("annotations") or {}).get(_TOKEN_OF)
    return bool(about.get("deletionTimestamp") or about.get("ownerReferences") or token)


def is_automatic(kind: str, item: Item) -> bool:
    """Whether Kubernetes itself creates and deletes an object of a namespace."""
    about = item["metadata"]
    token = (about.get("annotations") or {}).get(_TOKEN_OF)
    return (
        kind in _AUTOMATIC_KINDS or (kind, str(about["name"])) in _AUTOMATIC or token == "default"
    )


def some(refs: Sequence[object], most: int = 5) -> str:
    """The first of them, in words."""
    shown = ", ".join(str(ref) for ref in refs[:most])
    return f"{shown} and {len(refs) - most} more" if len(refs) > most else shown
