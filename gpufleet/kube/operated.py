"""Objects that an operator turns into workloads, such as a Prometheus. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpufleet.core.entries import Entry, Sourced, entry_loader
from gpufleet.kube.facts import ObjectRef


class OperatedKind(Sourced):
    """A kind. `api`: the path of its API; `conditions`: all True if an object of it works."""

    kind: str
    crd: str
    api: str
    conditions: tuple[str, ...]

    def path(self, ref: ObjectRef) -> str:
        plural = self.crd.split(".")[0]
        return f"{self.api}/namespaces/{ref.namespace}/{plural}/{ref.name}"


class OperatedKinds(Entry):
    """operated_kinds.yaml"""

    kinds: tuple[OperatedKind, ...]

    @property
    def by_kind(self) -> dict[str, OperatedKind]:
        return {entry.kind: entry for entry in self.kinds}


load_operated_kinds = entry_loader(OperatedKinds, "kube/operated_kinds")


def operated_states(items: Iterable[Mapping[str, Any]], kind: OperatedKind) -> dict[ObjectRef, str]:
    """Why each object does not work, by its operator's report, or "". Objects without a report are
    left out."""
    found = {}
    for item in items:
        metadata = item["metadata"]
        state = _state(item, kind)
        if state is not None:
            found[ObjectRef(kind.kind, metadata["namespace"], metadata["name"])] = state
    return found


def _state(item: Mapping[str, Any], kind: OperatedKind) -> str | None:
    """Why an object does not work, or "". None if its operator reports no condition."""
    if (item.get("spec") or {}).get("paused"):
        return ""
    listed = (item.get("status") or {}).get("conditions") or ()
    conditions = {entry["type"]: entry for entry in listed}
    reported = [conditions[name] for name in kind.conditions if name in conditions]
    generation = item["metadata"].get("generation") or 0
    if any((entry.get("observedGeneration") or generation) < generation for entry in reported):
        return "its operator has not observed the update yet"
    for entry in reported:
        if entry["status"] != "True":
            why = " ".join(str(entry.get("message") or entry.get("reason") or "no reason").split())
            return f"{entry['type']} is {entry['status']} ({why})"
    return "" if reported else None
