"""Removes from a cluster what gpufleet installed: its releases, and objects with its label."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyinfra import host, state
from pyinfra.api import FunctionCommand, Host, State

from gpufleet.core.inventory import CLUSTERS
from gpufleet.gpu_stack.counters import exporter_namespace
from gpufleet.gpu_stack.model import NODE_MARK, our_releases
from gpufleet.gpu_stack.operations.releases import ClusterRun, current_cluster
from gpufleet.gpu_stack.operations.stack import is_named_twice
from gpufleet.gpu_stack.removal import (
    Owned,
    Remains,
    StackRemoval,
    is_release_installed,
    marked_nodes,
    plan_stack_removal,
    ref_of,
)
from gpufleet.helm.chart_choice import load_charts
from gpufleet.host.operation import Commands, host_operation
from gpufleet.kube.facts import HelmRelease, ObjectRef
from gpufleet.kube.helm_releases import revision_of
from gpufleet.kube.keepers import keeper_of
from gpufleet.kube.objects import MANAGED_BY_LABELS, is_our_object
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import METADATA_ONLY, ClusterApi
from gpufleet.kube.operations.gather import OWN_RELEASES, ApiRequest, ask_all
from gpufleet.kube.operations.objects import write_object
from gpufleet.kube.operations.refused import ApiError
from gpufleet.kube.parse import release_of
from gpufleet.run.reporting import RunReport

LABELLED = {"labelSelector": ",".join(f"{key}={value}" for key, value in MANAGED_BY_LABELS.items())}
# other programs may use them
SHARED_KINDS = ("RuntimeClass", "CustomResourceDefinition", "Namespace")
PLURALS = {"Secret": "secrets", "Service": "services"}


@dataclass(frozen=True, slots=True)
class ClusterRemoval:
    """A cluster from which gpufleet is removed."""

    run: ClusterRun
    plan: StackRemoval

    @property
    def api(self) -> ClusterApi:
        return self.run.cluster.api


def current_removal() -> ClusterRemoval | None:
    """The removal of this deploy's cluster, or None if the host is not a cluster or is stopped."""
    if CLUSTERS not in host.groups:
        return None
    run = None if is_named_twice() else current_cluster()
    if run is None:
        return None
    began = time.monotonic()
    plan = plan_stack_removal(run.settings, run.facts, gather_remains(run))
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


def gather_remains(run: ClusterRun) -> Remains:
    """Find the objects that a removal must consider. Raises ClusterProblem."""
    api, facts, settings = run.cluster.api, run.facts, run.settings.monitoring
    space, exporter = settings.namespace, exporter_namespace(settings)
    monitoring = "/apis/monitoring.coreos.com/v1/namespaces"
    runtime = "v1" if facts.serves_api("node.k8s.io/v1") else "v1beta1"
    paths = {
        "ConfigMap": f"/api/v1/namespaces/{space}/configmaps",
        "PrometheusRule": f"{monitoring}/{space}/prometheusrules",
        "ServiceMonitor": f"{monitoring}/{exporter}/servicemonitors",
        "Secret": f"/api/v1/namespaces/{space}/secrets",
        "RuntimeClass": f"/apis/node.k8s.io/{runtime}/runtimeclasses",
        "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "Namespace": "/api/v1/namespaces",
    }
    asks = {
        kind: ApiRequest(path, accept=METADATA_ONLY, query=LABELLED, optional=True)
        for kind, path in paths.items()
    }
    asks["releases"] = OWN_RELEASES
    asks["claims"] = ApiRequest("/api/v1/persistentvolumeclaims", accept=METADATA_ONLY)
    asks["nodes"] = ApiRequest("/api/v1/nodes", accept=METADATA_ONLY)
    asks["pods"] = ApiRequest("/api/v1/pods")
    found = ask_all(api, asks)
    labelled = {  # Flux and Argo CD would create theirs again
        kind: [ref_of(item, kind) for item in found[kind] if not keeper_of(item)] for kind in paths
    }
    shared = [ref for kind in SHARED_KINDS for ref in labelled.pop(kind)]
    known = our_releases(run.settings)
    revisions = [revision_of(item) for item in found["releases"]]
    return Remains(
        objects=tuple(
            Owned(ref, f"{paths[kind]}/{ref.name}") for kind in labelled for ref in labelled[kind]
        ),
        shared=tuple(shared),
        nodes=marked_nodes(found["nodes"]),
        claims=tuple(ref_of(item, "PersistentVolumeClaim") for item in found["claims"]),
        left=_left_behind(api, {ref.name: ref.namespace for ref in known}),
        pods=found["pods"],
        elsewhere=tuple(sorted({one[0] for one in revisions if one and one[0] not in known})),
        users=_users(run),
    )


def _left_behind(api: ClusterApi, spaces: Mapping[str, str]) -> dict[str, tuple[ObjectRef, ...]]:
    """Chart -> existing objects that its programs created and helm does not delete."""
    found = {}
    for name, chart in load_charts().charts.items():
        refs = [
            ObjectRef(one.kind, one.namespace or spaces[name], one.name)
            for one in chart.left_behind
        ]
        found[name] = tuple(
            ref
            for ref in refs
            if api.find(f"/api/v1/namespaces/{ref.namespace}/{PLURALS[ref.kind]}/{ref.name}")
        )
    return found


def _users(run: ClusterRun) -> dict[str, tuple[ObjectRef, ...]]:
    """CRD that helm deletes with one of gpufleet's releases -> its objects that neither gpufleet
    nor that release created. Raises ClusterProblem if they cannot be listed."""
    going = {release.ref for release in run.facts.releases if is_release_installed(release)}
    found: dict[str, tuple[ObjectRef, ...]] = {}
    for crd in run.facts.crds.values():
        if crd.release in going and crd.versions:
            plural, _, group = crd.name.partition(".")
            items = run.cluster.api.list(f"/apis/{group}/{crd.versions[0]}/{plural}", METADATA_ONLY)
            found[crd.name] = tuple(
                ref_of(item, crd.kind)
                for item in items
                if release_of(item) != crd.release and not is_our_object(item)
            )
    return found


@host_operation
def uninstall_release(removal: ClusterRemoval, name: str) -> Commands:
    """
    Uninstall one of gpufleet's releases, and wait until its objects are gone.

    + removal: of the cluster
    + name: of the release
    """
    release = next((found for found in removal.plan.releases if found.name == name), None)
    if release is None:
        host.noop(f"gpufleet has no release {name} here")
        return
    yield FunctionCommand(_uninstall, (removal, release), {})


def _uninstall(state: State, host: Host, removal: ClusterRemoval, release: HelmRelease) -> bool:
    """pyinfra uses the return value only of a function that takes `state` and `host`."""
    problem = removal.run.cluster.uninstall(release, removal.run.settings.cluster.timeout)
    if problem:
        raise ClusterProblem(problem)
    removal.run.report.seen[release.name] = None
    return True


@host_operation
def delete_objects(removal: ClusterRemoval) -> Commands:
    """
    Delete the objects with gpufleet's label.

    + removal: of the cluster
    """
    if not removal.plan.objects:
        host.noop("no object has gpufleet's label")
    for found in removal.plan.objects:
        call = partial(_ignore_missing, partial(removal.api.delete, found.path))
        yield write_object(f"delete {found.ref}", call, secret=found.ref.kind == "Secret")


@host_operation
def unlabel_nodes(removal: ClusterRemoval) -> Commands:
    """
    Remove the label that gpufleet set on nodes.

    + removal: of the cluster
    """
    if not removal.plan.nodes:
        host.noop("gpufleet labelled no node")
    for name, label in removal.plan.nodes:
        body = {"metadata": {"labels": {label: None}, "annotations": {NODE_MARK: None}}}
        call = partial(removal.api.merge, f"/api/v1/nodes/{name}", body)
        yield write_object(f"remove the label of node {name}", partial(_ignore_missing, call))


def _ignore_missing(call: Any) -> None:
    try:
        call()
    except ApiError as error:
        if not error.is_missing:
            raise
