"""Deletes what is empty, as it was read, and waits until it is gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyinfra import state
from pyinfra.api import FunctionCommand

from gpufleet.core.findings import Finding
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.operations.releases import ClusterRun
from gpufleet.gpu_stack.operations.removal_reads import Contents
from gpufleet.gpu_stack.remains import Item, Leaving
from gpufleet.gpu_stack.removal import StackRemoval
from gpufleet.kube.facts import ObjectRef
from gpufleet.kube.objects import only
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.boundary import write
from gpufleet.kube.operations.refused import ApiError

PATIENCE = 120.0  # seconds to wait until deleted objects are gone
GLANCE = 10.0  # the same for those that an earlier run deleted
LOOK_EVERY = 0.5  # seconds


@dataclass(slots=True)
class ClusterRemoval:
    """A cluster from which gpufleet is removed. `acted`: this run has removed something;
    `unknown`: what stays because it is not known what it has."""

    run: ClusterRun
    plan: StackRemoval
    leaving: Leaving
    acted: bool = False
    unknown: list[Finding] = field(default_factory=list)

    @property
    def api(self) -> ClusterApi:
        return self.run.cluster.api

    def note(self, finding: Finding) -> None:
        """Report what stays, once; a preparation may still see what this run removes."""
        if state.is_executing and finding not in self.run.report.findings:
            self.run.report.findings.append(finding)

    def not_known(self, finding: Finding) -> None:
        """Report what stays because it is not known what it has: the removal then fails."""
        if state.is_executing:
            self.note(finding)
            self.unknown.append(finding)


def settled(
    removal: ClusterRemoval, look: Callable[[], Contents], leaves: Callable[[Item], bool]
) -> Contents:
    """What stays of what `look` returns, once the objects that `leaves` is true of are gone and
    the API has forgotten the deleted CRDs; what else does not respond is not waited for."""
    began = time.monotonic()
    found = look()
    while state.is_executing and _changes_soon(removal, found, leaves):
        if time.monotonic() - began > (PATIENCE if removal.acted else GLANCE):
            break
        time.sleep(LOOK_EVERY)
        found = look()
    return found


def _changes_soon(removal: ClusterRemoval, found: Contents, leaves: Callable[[Item], bool]) -> bool:
    """The API lists the groups of deleted CRDs for some seconds more."""
    if found.item is None or not all(leaves(item) for item in found.objects.values()):
        return False
    crds = (*removal.plan.crds, *removal.plan.templated) if removal.acted else ()
    gone = {crd.name.partition(".")[2] for crd in crds}
    return bool(found.objects) or any(each.group in gone for each in found.unknown)


def deletion(removal: ClusterRemoval, ref: ObjectRef, path: str, item: Item) -> FunctionCommand:
    """The command that deletes an object as it was read, and waits until it is gone."""
    known = ("uid", "resourceVersion", "deletionTimestamp")  # nothing that may hold a secret
    about = {key: item["metadata"].get(key) for key in known}
    call = partial(_delete, removal, ref, path, about)
    return write(f"delete {ref}", call, secret=ref.kind == "Secret")


def _delete(removal: ClusterRemoval, ref: ObjectRef, path: str, about: Mapping[str, Any]) -> None:
    try:
        if not about.get("deletionTimestamp"):
            removal.api.delete(path, only(about))
    except ApiError as error:
        if not error.is_missing:
            raise
    removal.acted = True
    began = time.monotonic()
    while (item := removal.api.find(path)) and item["metadata"]["uid"] == about["uid"]:
        if time.monotonic() - began > PATIENCE:
            waits = item["metadata"].get("finalizers") or ()
            why = f" (finalizers: {', '.join(waits)})" if waits else ""
            raise ClusterProblem(findings.NOT_GONE(object=ref, seconds=f"{PATIENCE:.0f}", why=why))
        time.sleep(LOOK_EVERY)
