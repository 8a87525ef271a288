"""Plans the changes to objects of a cluster outside Helm releases. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gpufleet.core.masks import flat_lines
from gpufleet.kube.keepers import Keeper, keeper_of

POD_SECURITY_LABEL = "pod-security.kubernetes.io/enforce"  # of a namespace
MAX_SHOWN_FIELDS = 5  # of a changed object
NOT_LISTED = ("apiVersion", "kind")  # the API leaves them out of the items of a list
FIELD_MANAGER = "gpufleet"  # field manager of applied fields
MANAGED_BY_LABELS = {"app.kubernetes.io/managed-by": "gpufleet"}
Body = Mapping[str, Any]
Action = Literal["create", "change", "delete"]


@dataclass(frozen=True, slots=True)
class ObjectSet:
    """All objects of gpufleet of one kind in one namespace.

    `path`: of their collection in the API. `part`: value of the label that identifies this set.
    Live objects with that label that are not in `objects` are deleted.
    """

    namespace: str
    path: str
    part: str
    objects: tuple[Body, ...]

    @property
    def labels(self) -> dict[str, str]:
        """The label selector of this set."""
        return {**MANAGED_BY_LABELS, "app.kubernetes.io/component": self.part}

    @property
    def selector(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.labels.items())

    def labelled(self) -> dict[str, Body]:
        """Name -> the object with the set's labels."""
        found: dict[str, Body] = {}
        for body in self.objects:
            about = body["metadata"]
            labels = {**about.get("labels", {}), **self.labels}
            metadata = {**about, "namespace": self.namespace, "labels": labels}
            found[str(about["name"])] = {**body, "metadata": metadata}
        return found


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One write. `body`: the whole object, or {} for a deletion; `fields`: those that change."""

    action: Action
    name: str
    body: Body
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Such as "change gpu-alerts: spec.groups[0].rules[2].expr"."""
        more = len(self.fields) - MAX_SHOWN_FIELDS
        shown = [*self.fields[:MAX_SHOWN_FIELDS], *([f"{more} more"] if more > 0 else [])]
        return f"{self.action} {self.name}" + (f": {', '.join(shown)}" if shown else "")


def namespace_body(name: str) -> dict[str, Any]:
    """A namespace of gpufleet's. Its pods may use ports, network and device nodes of their node."""
    labels = {POD_SECURITY_LABEL: "privileged", **MANAGED_BY_LABELS}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def object_changes(wanted: ObjectSet, live: Iterable[Body]) -> tuple[ObjectChange, ...]:
    """The writes that converge the live objects. `live`: the objects that match the selector."""
    there = {str(body["metadata"]["name"]): body for body in live}
    found = []
    for name, body in wanted.labelled().items():
        if name not in there:
            found.append(ObjectChange("create", name, body))
        elif not _has(there[name], body):
            found.append(ObjectChange("change", name, body, _changed_fields(there[name], body)))
    gone = sorted(set(there) - set(wanted.labelled()))
    return (*found, *(ObjectChange("delete", name, {}) for name in gone))


def split_kept(
    changes: Iterable[ObjectChange], live: Iterable[Body]
) -> tuple[list[ObjectChange], dict[str, Keeper]]:
    """The changes to make; and the name of each other object that differs, with what applies it."""
    kept = {str(body["metadata"]["name"]): keeper_of(body) for body in live}
    changes = list(changes)
    left = {change.name: keeper for change in changes if (keeper := kept.get(change.name))}
    return [change for change in changes if change.name not in left], left


def _changed_fields(live: Body, wanted: Body) -> tuple[str, ...]:
    """The paths of wanted values that the live object lacks or has otherwise."""
    there = set(flat_lines(live))
    lines = (line for line in flat_lines(wanted) if line not in there)
    paths = dict.fromkeys(line.partition(": ")[0] for line in lines)
    return tuple(path for path in paths if path not in NOT_LISTED)


def is_our_object(live: Body) -> bool:
    """True if gpufleet wrote an object: it has our label, or fields that we applied."""
    about = live.get("metadata") or {}
    labels = about.get("labels") or {}
    managers = {entry.get("manager") for entry in about.get("managedFields") or ()}
    return MANAGED_BY_LABELS.items() <= labels.items() or FIELD_MANAGER in managers


def _has(live: Any, wanted: Any) -> bool:
    """True if `live` has everything in `wanted`. The API server adds fields only to mappings. Items
    of lists lack `kind` and `apiVersion`."""
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(
            _has(live.get(key), value)
            for key, value in wanted.items()
            if key not in ("kind", "apiVersion")
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(live, list)
            and len(live) == len(wanted)
            and all(_has(one, other) for one, other in zip(live, wanted, strict=True))
        )
    return bool(live == wanted)
