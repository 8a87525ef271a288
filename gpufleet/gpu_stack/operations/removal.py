"""Removes from a cluster what gpufleet installed there; what others need stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyinfra import host, state
from pyinfra.api import FunctionCommand, Host, State

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CLUSTERS
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.model import NODE_MARK
from gpufleet.gpu_stack.operations.releases import ClusterRun, current_cluster
from gpufleet.gpu_stack.operations.removal_facts import gather_remains, namespaced, objects_in
from gpufleet.gpu_stack.operations.stack import is_named_twice
from gpufleet.gpu_stack.remains import (
    LEFT,
    ChartCrd,
    Item,
    Owned,
    is_leaving,
    is_ours,
    ref_of,
)
from gpufleet.gpu_stack.removal import (
    StackRemoval,
    crd_stays,
    namespace_stays,
    plan_stack_removal,
)
from gpufleet.helm.chart_choice import load_charts
from gpufleet.host.operation import Commands
from gpufleet.kube.facts import HelmRelease, ObjectRef
from gpufleet.kube.objects import only
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import METADATA_ONLY, ApiError, ClusterApi
from gpufleet.kube.operations.boundary import cluster_boundary, cluster_operation, write
from gpufleet.run.reporting import RunReport

PATIENCE = 120.0  # seconds to wait until deleted objects are gone
GLANCE = 10.0  # the same for those that an earlier run deleted
LOOK_EVERY = 0.5  # seconds
_MISSING = 404


@dataclass(slots=True)
class ClusterRemoval:
    """A cluster from which gpufleet is removed. `acted`: this run has removed something."""

    run: ClusterRun
    plan: StackRemoval
    acted: bool = False

    @property
    def api(self) -> ClusterApi:
        return self.run.cluster.api

    def note(self, finding: Finding) -> None:
        """Report what stays, once; a preparation may still see what this run removes."""
        if state.is_executing and finding not in self.run.report.findings:
            self.run.report.findings.append(finding)


def current_removal() -> ClusterRemoval | None:
    """The removal of this deploy's cluster; None for a host that is no cluster, or is stopped."""
    if CLUSTERS not in host.groups:
        return None
    with cluster_boundary():
        return _removal()
    return None


def _removal() -> ClusterRemoval | None:
    run = None if is_named_twice() else current_cluster()
    if run is None:
        return None
    began = time.monotonic()
    catalog = load_charts()
    remains = gather_remains(run.cluster.api, run.facts, run.settings, catalog)
    plan = plan_stack_removal(run.settings, run.facts, remains, catalog)
    part = run.report
    part.leaves = True
    part.findings += plan.findings
    part.plan |= plan.describe()
    part.releases |= plan.movements
    part.seconds += time.monotonic() - began
    if plan.blockers:
        part.steps.clear()
        RunReport.of(state).block(host, [])
        return None
    if run.cluster.helm.lease:
        run.cluster.helm.lease.deletes = True
    return ClusterRemoval(run, plan)


@cluster_operation
def uninstall(removal: ClusterRemoval, name: str) -> Commands:
    """
    Uninstall one of gpufleet's releases, and wait until its objects are gone.

    + removal: of the cluster
    + name: of the release
    """
    release = removal.plan.release(name)
    if release is None:
        host.noop(f"gpufleet has no release {name} here")
        return
    yield FunctionCommand(_uninstall, (removal, release), {})


def _uninstall(state: State, host: Host, removal: ClusterRemoval, release: HelmRelease) -> bool:
    """pyinfra honours the return value only of a function that takes `state` and `host`."""
    problem = removal.run.cluster.uninstall(release, removal.run.settings.cluster.timeout)
    if problem:
        raise ClusterProblem(problem)
    removal.run.report.seen[release.name] = None
    removal.acted = True
    return True


@cluster_operation
def mark_left(removal: ClusterRemoval) -> Commands:
    """
    Label what the releases will leave behind: a later run knows by it what to delete.

    + removal: of the cluster
    """
    there = [(found, removal.api.find(found.path)) for found in removal.plan.left]
    unmarked = [found for found, item in there if item and not is_ours(item)]
    if not unmarked:
        host.noop("the releases leave nothing behind")
        return
    for found in unmarked:
        call = partial(removal.api.merge, found.path, {"metadata": {"labels": LEFT}})
        yield write(f"label {found.ref}", call, secret=found.ref.kind == "Secret")


@cluster_operation
def delete(removal: ClusterRemoval, objects: Sequence[Owned]) -> Commands:
    """
    Delete objects that gpufleet created.

    + removal: of the cluster
    + objects: with the label of gpufleet's objects
    """
    there = [(found, removal.api.find(found.path)) for found in objects]
    live = [(found, item) for found, item in there if item and is_ours(item)]
    if not live:
        host.noop("gpufleet created none that is still there")
        return
    for found, item in live:
        yield _deletion(removal, found.ref, found.path, item)


@cluster_operation
def unlabel_nodes(removal: ClusterRemoval) -> Commands:
    """
    Remove the label that gpufleet set on nodes.

    + removal: of the cluster
    """
    if not removal.plan.nodes:
        host.noop("gpufleet labelled no node")
        return

    def unlabel_all() -> None:
        for name, label in removal.plan.nodes:
            about = {"labels": {label: None}, "annotations": {NODE_MARK: None}}
            try:
                removal.api.merge(f"/api/v1/nodes/{name}", {"metadata": about})
            except ApiError as error:
                if error.status != _MISSING:  # the node has left the cluster
                    raise

    yield write("remove the label of nodes", unlabel_all)


@cluster_operation
def delete_crds(removal: ClusterRemoval) -> Commands:
    """
    Delete the CRDs that gpufleet created and that have no objects; the others stay.

    + removal: of the cluster
    """
    kept = True
    for crd in removal.plan.crds:
        objects = _settled(removal, partial(_objects_of, removal.api, crd))
        item = removal.api.find(crd.path)
        if item is None or not is_ours(item):
            continue
        if objects:
            removal.note(crd_stays(crd.name, objects))
            continue
        kept = False
        yield _deletion(
            removal, ObjectRef("CustomResourceDefinition", "", crd.name), crd.path, item
        )
    if kept:
        host.noop("no CRD of gpufleet is without objects of others")


def _objects_of(api: ClusterApi, crd: ChartCrd) -> dict[ObjectRef, Item]:
    """Every object of a CRD, also gpufleet's: deleting the CRD would delete it."""
    try:
        items = api.list(crd.objects, METADATA_ONLY) if crd.objects else []
    except ApiError as error:
        if error.status != _MISSING:
            raise
        items = []
    return {ref_of(item, crd.name): item for item in items}


@cluster_operation
def delete_namespaces(removal: ClusterRemoval) -> Commands:
    """
    Delete the namespaces that gpufleet created and that are empty; the others stay.

    + removal: of the cluster
    """
    kept = True
    kinds, silent = _answering(removal) if removal.plan.namespaces else ({}, [])
    for space in removal.plan.namespaces:
        objects = _settled(removal, partial(objects_in, removal.api, space.ref.name, kinds))
        item = removal.api.find(space.path)
        if item is None or not is_ours(item):
            continue
        if objects or silent:
            removal.note(namespace_stays(space.ref.name, objects, silent))
            continue
        kept = False
        yield _deletion(removal, space.ref, space.path, item)
    if kept:
        host.noop("no namespace of gpufleet is empty")


def _answering(removal: ClusterRemoval) -> tuple[dict[str, str], list[str]]:
    """As `namespaced`: the API lists the groups of deleted CRDs for some seconds more. Other groups
    that do not respond are not waited for."""
    began = time.monotonic()
    gone = {crd.name.partition(".")[2] for crd in removal.plan.crds} if removal.acted else set()
    kinds, silent = namespaced(removal.api)
    while state.is_executing and any(name.partition("/")[0] in gone for name in silent):
        if time.monotonic() - began > PATIENCE:
            break
        time.sleep(LOOK_EVERY)
        kinds, silent = namespaced(removal.api)
    return kinds, silent


def _settled(
    removal: ClusterRemoval, look: Callable[[], dict[ObjectRef, Item]]
) -> dict[ObjectRef, Item]:
    """What stays of the objects that `look` returns, once those that go with their owner are
    gone."""
    began = time.monotonic()
    found = look()
    while state.is_executing and found:
        late = time.monotonic() - began > (PATIENCE if removal.acted else GLANCE)
        if late or not all(is_leaving(item) for item in found.values()):
            break
        time.sleep(LOOK_EVERY)
        found = look()
    return found


def _deletion(removal: ClusterRemoval, ref: ObjectRef, path: str, item: Item) -> FunctionCommand:
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
        if error.status != _MISSING:
            raise
    removal.acted = True
    began = time.monotonic()
    while (item := removal.api.find(path)) and item["metadata"]["uid"] == about["uid"]:
        if time.monotonic() - began > PATIENCE:
            waits = item["metadata"].get("finalizers") or ()
            why = f" (finalizers: {', '.join(waits)})" if waits else ""
            raise ClusterProblem(findings.NOT_GONE(object=ref, seconds=f"{PATIENCE:.0f}", why=why))
        time.sleep(LOOK_EVERY)
