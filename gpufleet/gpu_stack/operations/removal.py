"""Removes from a cluster what gpufleet installed there; what others need stays."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from pyinfra import host, state
from pyinfra.api import FunctionCommand, Host, State

from gpufleet.core.inventory import CLUSTERS
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.model import NODE_MARK
from gpufleet.gpu_stack.operations.releases import current_cluster
from gpufleet.gpu_stack.operations.removal_deletes import ClusterRemoval, deletion, settled
from gpufleet.gpu_stack.operations.removal_facts import gather_remains
from gpufleet.gpu_stack.operations.removal_reads import (
    contents_of,
    crd_contents,
    namespace_contents,
)
from gpufleet.gpu_stack.operations.stack import is_named_twice
from gpufleet.gpu_stack.remains import (
    LEFT,
    Owned,
    is_leaving,
    is_ours,
    some,
    users_of,
)
from gpufleet.gpu_stack.removal import leaving_of, plan_stack_removal
from gpufleet.gpu_stack.removal_notes import crd_of_release, crd_stays, namespace_stays
from gpufleet.helm.chart_choice import load_charts
from gpufleet.host.operation import Commands
from gpufleet.kube.facts import HelmRelease, ObjectRef
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.boundary import cluster_boundary, cluster_operation, write
from gpufleet.kube.operations.refused import ApiError
from gpufleet.run.reporting import RunReport


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
    return ClusterRemoval(run, plan, leaving_of(run.settings, run.facts, catalog))


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
    _require_unused(removal, release)
    problem = removal.run.cluster.uninstall(release, removal.run.settings.cluster.timeout)
    if problem:
        raise ClusterProblem(problem)
    removal.run.report.seen[release.name] = None
    removal.acted = True
    return True


def _require_unused(removal: ClusterRemoval, release: HelmRelease) -> None:
    """Raise ClusterProblem where helm would delete objects of others with a CRD of a release, now
    that its turn has come."""
    for crd in removal.plan.templated:
        item = removal.api.find(crd.path) if crd.release == release.ref else None
        if item is None:
            continue
        found = contents_of(removal.api, item)
        kind = str(item["spec"]["names"]["kind"])
        users = users_of(crd.name, kind, found.objects.values(), removal.leaving)
        problems = tuple(crd_of_release(crd.name, release.ref, users, found.why))
        if problems:
            raise ClusterProblem(*problems)


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
        yield deletion(removal, found.ref, found.path, item)


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
                if not error.is_missing:  # the node has left the cluster
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
        found = settled(
            removal,
            partial(crd_contents, removal.api, crd.path),
            partial(removal.leaving.deletes, crd.name),
        )
        if found.item is None:
            continue
        if found.objects:
            removal.note(crd_stays(crd.name, found.objects))
        elif found.unknown:
            removal.not_known(findings.CRD_UNKNOWN(crd=crd.name, why=found.why))
        else:
            kept = False
            ref = ObjectRef("CustomResourceDefinition", "", crd.name)
            yield deletion(removal, ref, crd.path, found.item)
    if kept:
        host.noop("no CRD of gpufleet is without objects of others")


@cluster_operation
def delete_namespaces(removal: ClusterRemoval) -> Commands:
    """
    Delete the namespaces that gpufleet created and that are empty; the others stay.

    The last operation: it fails if something stayed because it is not known what it has.

    + removal: of the cluster
    """
    kept = True
    for space in removal.plan.namespaces:
        found = settled(removal, partial(namespace_contents, removal.api, space.path), is_leaving)
        name = space.ref.name
        if found.item is None:
            continue
        if found.objects:
            removal.note(namespace_stays(name, found.of_others or found.objects))
        elif found.unknown:
            apis = some(found.unknown)
            removal.not_known(findings.NAMESPACE_UNKNOWN(namespace=name, apis=apis))
        else:
            kept = False
            yield deletion(removal, space.ref, space.path, found.item)
    if kept:
        host.noop("no namespace of gpufleet is empty")
    if removal.unknown:
        raise ClusterProblem(*removal.unknown)
