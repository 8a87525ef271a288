"""Objects of a cluster that no Helm release holds, as pyinfra sees them."""

from __future__ import annotations

from pyinfra import host
from pyinfra.api import FunctionCommand, Host, State

from gpufleet.host.operation import Commands
from gpufleet.kube.objects import ObjectChange, ObjectSet, changes
from gpufleet.kube.operations.api import ApiError, ClusterApi
from gpufleet.kube.operations.boundary import cluster_operation, writing
from gpufleet.kube.operations.namespaces import ensure_namespace


def pending(api: ClusterApi, wanted: ObjectSet) -> tuple[ObjectChange, ...]:
    """What is to be written. Raises ApiError where the API refuses to tell."""
    try:
        live = api.list(wanted.path, labelSelector=wanted.selector)
    except ApiError as error:
        if error.status != 404:  # of a kind, or a whole group, that the API does not serve
            raise
        live = []
    return changes(wanted, live)


@cluster_operation
def keep(api: ClusterApi, wanted: ObjectSet | None) -> Commands:
    """
    Bring a set of objects to its plan; what is ours and no longer wanted is deleted.

    + api: of the cluster
    + wanted: the set; None where it is none of our business
    """
    found = pending(api, wanted) if wanted else ()
    if not wanted or not found:
        host.noop("they are as they should be")
        return
    for change in found:
        yield FunctionCommand(_write, (api, wanted, change), {})


def _write(
    state: State, host: Host, api: ClusterApi, wanted: ObjectSet, change: ObjectChange
) -> bool:
    path = f"{wanted.path}/{change.name}"
    with writing(f"{change.action} {path}"):
        if change.action == "delete":
            api.delete(path)
        else:
            _apply(api, wanted.namespace, path, change)
    return True


def _apply(api: ClusterApi, namespace: str, path: str, change: ObjectChange) -> None:
    """Server-side apply: kubectl's own way would copy a dashboard into an annotation that is too
    small for it."""
    try:
        api.apply(path, change.body)
    except ApiError as error:
        if error.reason != "NotFound" or "namespaces" not in error.message:
            raise
        ensure_namespace(api, namespace)
        api.apply(path, change.body)
