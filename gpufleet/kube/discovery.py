"""Which kinds of objects a cluster has, by its discovery, its APIServices and its CRDs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.kube.parse import condition

Answer = Mapping[str, Any]
CORE = "v1"


@dataclass(frozen=True, slots=True)
class ListedKind:
    """A kind of objects in namespaces, in one of the versions that serve it."""

    group_version: str  # v1, apps/v1
    plural: str
    kind: str

    @property
    def group(self) -> str:
        """ "" for the core API."""
        return self.group_version.rpartition("/")[0]

    def __str__(self) -> str:
        return f"{self.plural} in {self.group_version}"

    def path(self, namespace: str) -> str:
        """The list of its objects in a namespace."""
        return f"{root_of(self.group_version)}/namespaces/{namespace}/{self.plural}"


def root_of(group_version: str) -> str:
    """The path at which a version of a group says what it serves."""
    return f"/api/{CORE}" if group_version == CORE else f"/apis/{group_version}"


def group_versions(groups: Answer, api_services: Iterable[Answer]) -> list[str]:
    """Every version of every group, a group's preferred one first.

    `groups`: /apis. A server that starts leaves out what it does not know yet, and some leave out
    the APIs of programs that are down; the APIServices name them all.
    """
    found = [CORE]
    for group in groups["groups"]:
        preferred = (group.get("preferredVersion") or {}).get("groupVersion")
        names = [str(version["groupVersion"]) for version in group["versions"]]
        found += sorted(names, key=lambda name: name != preferred)
    for item in api_services:
        version, _, group = str(item["metadata"]["name"]).partition(".")
        if group:  # the core API's is named "v1."
            found.append(f"{group}/{version}")
    return list(dict.fromkeys(found))


def stored_kinds(resources: Mapping[str, Answer]) -> tuple[ListedKind, ...]:
    """Kinds of objects that namespaces have, each once. `resources`: group/version ->
    APIResourceList; of several versions of a kind, the first one counts."""
    found: dict[tuple[str, str], ListedKind] = {}
    for group_version, answer in resources.items():
        for resource in answer.get("resources") or ():
            if resource["namespaced"] and _is_stored(resource):
                kind = ListedKind(group_version, str(resource["name"]), str(resource["kind"]))
                found.setdefault((kind.group, kind.plural), kind)
    return tuple(found.values())


def _is_stored(resource: Answer) -> bool:
    """Whether it is a kind of objects that can be listed and deleted; metrics cannot be."""
    verbs = resource.get("verbs") or ()
    return "/" not in resource["name"] and "list" in verbs and "delete" in verbs


def unserved(
    crds: Iterable[Answer], resources: Mapping[str, Answer], silent: Collection[str]
) -> list[str]:
    """Names of the CRDs that no version of their group lists. `crds`: their metadata; `silent`:
    versions of groups that did not say what they serve."""
    served = {
        f"{resource['name']}.{group_version.rpartition('/')[0]}"
        for group_version, answer in resources.items()
        for resource in answer.get("resources") or ()
    }
    known = {name.rpartition("/")[0] for name in silent}
    names = [str(item["metadata"]["name"]) for item in crds]
    return [name for name in names if name not in served and name.partition(".")[2] not in known]


def may_be_in_namespaces(crd: Answer) -> bool:
    """Whether namespaces may have objects of a complete CRD."""
    return crd["spec"]["scope"] == "Namespaced" and is_established(crd)


def is_established(crd: Answer) -> bool:
    """Whether objects of a complete CRD may exist: once true, this stays so.

    https://github.com/kubernetes/apiextensions-apiserver/blob/master/pkg/controller/status/naming_controller.go
    """
    return bool(condition(crd, "Established"))


def list_of(crd: Answer) -> str:
    """Path of the list of a complete CRD's objects in all namespaces, in the version in which they
    are stored if it is served; "" where no version is served."""
    spec = crd["spec"]
    served = [version for version in spec["versions"] if version["served"]]
    if not served:
        return ""
    version = next((each for each in served if each.get("storage")), served[0])
    return f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
