"""Recognizes what applies an object again and again: Flux or Argo CD. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.core.entries import Entry, Sourced, entry_loader

RENDERED_PREFIX = "gpufleet-"  # of the names of GitOps objects from `gpufleet render`
HELM_NAME = "meta.helm.sh/release-name"  # helm's annotation


@dataclass(frozen=True, slots=True, order=True)
class Keeper:
    """The GitOps object that applies an object. `namespace`: "" if unknown."""

    tool: str  # Flux, Argo CD
    kind: str  # HelmRelease, Kustomization, Application
    namespace: str
    name: str

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.tool} ({self.kind} {place})"

    @property
    def chart(self) -> str:
        """The chart of a HelmRelease or Application from `gpufleet render`, or "". A user may add a
        suffix with a dot: one Argo CD has Applications of several clusters."""
        found = self.name.startswith(RENDERED_PREFIX) and self.kind != "Kustomization"
        return self.name.removeprefix(RENDERED_PREFIX).partition(".")[0] if found else ""


class KeeperMark(Sourced):
    """A label or annotation by which a tool marks objects."""

    tool: str
    kind: str
    label: str = ""
    annotation: str = ""
    namespace: str = ""
    rendered_only: bool = False


class KeeperMarks(Entry):
    """keepers.yaml"""

    marks: tuple[KeeperMark, ...]


load_keeper_marks = entry_loader(KeeperMarks, "kube/keepers")


def keeper_of(answer: Mapping[str, Any]) -> Keeper | None:
    """The keeper of an object of the API, or None."""
    about = answer["metadata"]
    labels, annotations = about.get("labels") or {}, about.get("annotations") or {}
    for mark in load_keeper_marks().marks:
        text = str(annotations.get(mark.annotation) or labels.get(mark.label) or "")
        name = text.split(":")[0].rpartition("_")[2]
        if mark.rendered_only and text == annotations.get(HELM_NAME):
            continue  # helm's own label
        if mark.annotation and _is_copied(text, about):
            continue
        if name and (name.startswith(RENDERED_PREFIX) or not mark.rendered_only):
            return Keeper(mark.tool, mark.kind, str(labels.get(mark.namespace) or ""), name)
    return None


def _is_copied(mark: str, about: Mapping[str, Any]) -> bool:
    """True if the mark names another object, as on a copy by hand, which Argo CD ignores, too. An
    object with an owner may have the mark of its owner: operators copy it."""
    namespace, slash, name = mark.rpartition(":")[2].partition("/")
    if not slash or not about.get("name") or about.get("ownerReferences"):
        return False
    return (namespace, name) != (about.get("namespace") or namespace, about["name"])
