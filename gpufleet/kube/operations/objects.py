"""The operation on objects of a cluster outside Helm releases."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from pyinfra import host
from pyinfra.api import FunctionCommand, Host, State

from gpufleet.host.operation import Commands, operation
from gpufleet.kube.findings import OBJECT_OF_OTHERS, WRITE_REFUSED
from gpufleet.kube.objects import Action, Body, ObjectChange, ObjectSet, changes, is_ours
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.namespaces import ensure_namespace
from gpufleet.kube.operations.refused import ApiError

NEEDED: tuple[Action, ...] = ("create", "change")
STALE: tuple[Action, ...] = ("delete",)


def write(action: str, call: Callable[[], object], *, secret: bool = False) -> FunctionCommand:
    """The command of a write that the API server may reject; the finding then names `action`.

    `secret`: the object is secret, and the server's message may quote it.
    """
    return FunctionCommand(_write, (action, call, secret), {})


def _write(state: State, host: Host, action: str, call: Callable[[], object], secret: bool) -> bool:
    """pyinfra honours the return value only of a function that takes `state` and `host`."""
    try:
        call()
    except ApiError as error:
        reason = error.reason if secret else error
        raise ClusterProblem(WRITE_REFUSED(action=action, reason=reason)) from error
    return True


def live_objects(api: ClusterApi, wanted: ObjectSet) -> list[Body]:
    """The objects of the set that are in the cluster. Raises ApiError if the API rejects it."""
    try:
        return api.list(wanted.path, labelSelector=wanted.selector)
    except ApiError as error:
        if not error.is_missing:  # a kind or group that the API does not serve
            raise
        return []


def pending(
    api: ClusterApi, wanted: ObjectSet, live: list[Body], actions: Collection[Action]
) -> tuple[ObjectChange, ...]:
    """The writes of these kinds that are needed. Raises ClusterProblem if the name of an object is
    taken by one that is not ours."""
    found = [change for change in changes(wanted, live) if change.action in actions]
    for change in found:
        there = api.find(f"{wanted.path}/{change.name}") if change.action == "create" else None
        if there and not is_ours(there):
            kind = change.body["kind"]
            about = OBJECT_OF_OTHERS(kind=kind, namespace=wanted.namespace, name=change.name)
            raise ClusterProblem(about)
    return tuple(found)


@operation
def apply_objects(
    api: ClusterApi, wanted: ObjectSet | None, actions: Collection[Action] = (*NEEDED, *STALE)
) -> Commands:
    """
    Create, update and delete the objects of a set.

    + api: of the cluster
    + wanted: the set; None for no change
    + actions: NEEDED or STALE alone, where the others are an operation of their own
    """
    found = pending(api, wanted, live_objects(api, wanted), actions) if wanted else ()
    if not wanted or not found:
        host.noop("objects are up to date")
        return
    for change in found:
        yield written(api, wanted, change)


def written(api: ClusterApi, wanted: ObjectSet, change: ObjectChange) -> FunctionCommand:
    """The command of one change of a set."""
    path = f"{wanted.path}/{change.name}"
    deleted = partial(api.delete, path)
    applied = partial(_apply, api, wanted.namespace, path, change)
    return write(f"{change.action} {path}", deleted if change.action == "delete" else applied)


def _apply(api: ClusterApi, namespace: str, path: str, change: ObjectChange) -> None:
    """Server-side apply: client-side apply would copy a dashboard into an annotation, which is too
    small for it."""
    try:
        api.apply(path, change.body)
    except ApiError as error:
        if error.reason != "NotFound" or "namespaces" not in error.answer:
            raise
        ensure_namespace(api, namespace)
        api.apply(path, change.body)
