"""Reads what CRDs and namespaces have, right before they are deleted: what was not read is not
known, and never none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from gpufleet.core.allowance import Allowance, all_lists
from gpufleet.gpu_stack.remains import Item, is_automatic, is_ours, ref_of
from gpufleet.kube.discovery import (
    ListedKind,
    group_versions,
    is_established,
    list_of,
    may_be_in_namespaces,
    root_of,
    stored_kinds,
    unserved,
)
from gpufleet.kube.facts import ObjectRef
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import METADATA_ONLY, ClusterApi
from gpufleet.kube.operations.gather import Ask, ask_all, ask_each
from gpufleet.kube.operations.refused import ApiError, refusals

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
_FORBIDDEN = 403


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A part of the API that did not say what it has. `group`: "" for the core API."""

    group: str
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what} ({self.why})"


@dataclass(frozen=True, slots=True)
class Kinds:
    """Kinds of objects that namespaces have. `unknown`: what may have more."""

    listed: tuple[ListedKind, ...]
    unknown: tuple[Unanswered, ...] = ()


@dataclass(frozen=True, slots=True)
class Contents:
    """Objects of a CRD, or in a namespace. `unknown`: what may have more of them; without any,
    `objects` is all there is. `item`: the CRD or namespace itself, read before them; None where it
    is gone, or is not gpufleet's."""

    objects: Mapping[ObjectRef, Item] = field(default_factory=dict)
    unknown: tuple[Unanswered, ...] = ()
    item: Item | None = None

    @property
    def of_others(self) -> list[ObjectRef]:
        """The objects that gpufleet did not create, sorted."""
        return sorted(ref for ref, item in self.objects.items() if not is_ours(item))

    @property
    def why(self) -> str:
        """Why it is not known what there is; "" if it is."""
        return ", ".join(each.why for each in self.unknown)


def crd_contents(api: ClusterApi, path: str) -> Contents:
    """A CRD of gpufleet's, and every object of it, also gpufleet's: they would go with it."""
    item = api.find(path)
    if item is None or not is_ours(item):
        return Contents()
    return contents_of(api, item)


def contents_of(api: ClusterApi, crd: Item) -> Contents:
    """The objects of a complete CRD, in all namespaces."""
    if not is_established(crd):
        return Contents(item=crd)
    name, path = str(crd["metadata"]["name"]), list_of(crd)
    group = name.partition(".")[2]
    if not path:
        silent = Unanswered(group, f"CRD {name}", "it serves no version")
        return Contents({}, (silent,), crd)
    answers, refused = ask_each(api, {path: Ask(path, accept=METADATA_ONLY)}, all_lists())
    kind = str(crd["spec"]["names"]["kind"])
    objects = {ref_of(item, kind): item for item in answers.get(path) or ()}
    unknown = _unknown(refused, lambda _: group, lambda _: name)
    return Contents(objects, unknown, crd)


def namespace_contents(api: ClusterApi, path: str) -> Contents:
    """A namespace of gpufleet's, and what it has."""
    item = api.find(path)
    if item is None or not is_ours(item):
        return Contents()
    found = objects_in(api, str(item["metadata"]["name"]), namespaced(api))
    return Contents(found.objects, found.unknown, item)


def namespaced(api: ClusterApi) -> Kinds:
    """The kinds of objects that namespaces have, in all versions of all groups."""
    allowance = all_lists()
    first = {
        "groups": Ask("/apis", many=False),
        "api_services": Ask(API_SERVICES, accept=METADATA_ONLY),
        "crds": Ask(CRDS, accept=METADATA_ONLY),
    }
    found = ask_all(api, first, allowance)
    names = group_versions(found["groups"], found["api_services"])
    asks = {name: Ask(root_of(name), many=False) for name in names}
    resources, refused = ask_each(api, asks, allowance)
    unknown = _unknown(refused, _group, str)
    mute = [name for name, answer in resources.items() if "resources" not in answer]
    unknown += tuple(Unanswered(_group(name), name, "no list of kinds") for name in mute)
    hidden = unserved(found["crds"], resources, [*refused, *mute])
    return Kinds(stored_kinds(resources), (*unknown, *_hidden(api, hidden, allowance)))


def _group(group_version: str) -> str:
    return group_version.rpartition("/")[0]


def _hidden(api: ClusterApi, names: Iterable[str], allowance: Allowance) -> tuple[Unanswered, ...]:
    """Those of the CRDs without a place in the discovery that namespaces may have objects of."""
    asks = {name: Ask(f"{CRDS}/{name}", many=False, optional=True) for name in names}
    crds = ask_all(api, asks, allowance)
    return tuple(
        Unanswered(name.partition(".")[2], f"CRD {name}", "the API does not serve it")
        for name, crd in crds.items()
        if crd and may_be_in_namespaces(crd)
    )


def objects_in(api: ClusterApi, namespace: str, kinds: Kinds) -> Contents:
    """The objects of a namespace, without those that Kubernetes creates in each."""
    paths = {kind.path(namespace): kind for kind in kinds.listed}
    asks = {path: Ask(path, accept=METADATA_ONLY) for path in paths}
    answers, refused = ask_each(api, asks, all_lists())
    objects = {
        ref_of(item, paths[path].kind): item
        for path, items in answers.items()
        for item in items
        if not is_automatic(paths[path].kind, item)
    }
    late = _unknown(refused, lambda path: paths[path].group, lambda path: str(paths[path]))
    return Contents(objects, (*kinds.unknown, *late))


def _unknown(
    refused: Mapping[str, ApiError], group: Callable[[str], str], what: Callable[[str], str]
) -> tuple[Unanswered, ...]:
    """What was rejected, as not known. `group`, `what`: of a name in `refused`."""
    return tuple(Unanswered(group(name), what(name), why) for name, why in reasons(refused).items())


def reasons(refused: Mapping[str, ApiError]) -> dict[str, str]:
    """Why each of them was rejected. Raises ClusterProblem for missing permissions: without them,
    it is never known."""
    forbidden = [error for error in refused.values() if error.status == _FORBIDDEN]
    if forbidden:
        raise ClusterProblem(*refusals(forbidden))
    return {
        name: f"{error.status} {error.message or error.reason}".strip()
        for name, error in refused.items()
    }
