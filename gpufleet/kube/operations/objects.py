"""The operation that applies objects of a cluster outside Helm releases."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

import click
from pyinfra import host, state
from pyinfra.api import FunctionCommand, Host, State

from gpufleet.core.visible import one_line
from gpufleet.host.operation import Commands, host_operation
from gpufleet.kube.facts import ObjectRef
from gpufleet.kube.findings import OBJECT_KEPT, OBJECT_OF_OTHERS, WRITE_REFUSED
from gpufleet.kube.keepers import Keeper
from gpufleet.kube.objects import (
    Action,
    Body,
    ObjectChange,
    ObjectSet,
    is_our_object,
    namespace_body,
    object_changes,
    split_kept,
)
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.run.reporting import RunReport

NEEDED: tuple[Action, ...] = ("create", "change")
STALE_ACTIONS: tuple[Action, ...] = ("delete",)


def write_object(
    action: str, call: Callable[[], object], *, secret: bool = False
) -> FunctionCommand:
    """A write that the API server may reject. The finding then names `action`.

    `secret`: the object is secret, and the server's message may quote it.
    """
    return FunctionCommand(_write, (action, call, secret), {})


def _write(state: State, host: Host, action: str, call: Callable[[], object], secret: bool) -> bool:
    """pyinfra uses the return value only of functions that take `state` and `host`."""
    try:
        call()
    except ApiError as error:
        reason = error.reason if secret else error
        raise ClusterProblem(WRITE_REFUSED(action=action, reason=reason)) from error
    return True


@host_operation
def apply_objects(
    api: ClusterApi,
    wanted: ObjectSet | None,
    actions: Collection[Action] = (*NEEDED, *STALE_ACTIONS),
) -> Commands:
    """
    Create, update and delete the objects of a set.

    + api: of the cluster
    + wanted: the set, or None for no change
    + actions: only NEEDED or only STALE, to split the work into two operations
    """
    live: list[Body] = []
    if wanted:
        try:
            live = api.list(wanted.path, labelSelector=wanted.selector)
        except ApiError as error:
            if not error.is_missing:  # the API does not serve the kind or group
                raise
    found, kept = split_kept(object_changes(wanted, live) if wanted else (), live)
    found = [change for change in found if change.action in actions]
    if wanted:
        _report_kept(wanted, kept)
    if not wanted or not found:
        host.noop("objects are up to date")
        return
    for change in found:  # before any is written
        there = api.find(f"{wanted.path}/{change.name}") if change.action == "create" else None
        if there and not is_our_object(there):
            kind = change.body["kind"]
            taken = OBJECT_OF_OTHERS(kind=kind, namespace=wanted.namespace, name=change.name)
            raise ClusterProblem(taken)
    for change in found if state.config.DIFF and not state.is_executing else ():
        click.echo(f"    [{one_line(host.name)}] {one_line(str(change))}", err=True)
    for change in found:
        path = f"{wanted.path}/{change.name}"
        call: Callable[[], object] = partial(_apply, api, wanted.namespace, path, change)
        if change.action == "delete":
            call = partial(api.delete, path)
        yield write_object(f"{change.action} {path}", call)


def _report_kept(wanted: ObjectSet, kept: Mapping[str, Keeper]) -> None:
    """Report the objects that differ and stay, because Flux or Argo CD applies them."""
    part, kind = RunReport.of(state).host(host.name), wanted.path.rpartition("/")[2]
    for name, keeper in kept.items():
        found = OBJECT_KEPT(keeper=keeper, name=name, kind=kind, namespace=wanted.namespace)
        if found not in part.findings:
            part.findings.append(found)


def _apply(api: ClusterApi, namespace: str, path: str, change: ObjectChange) -> None:
    """Server-side apply. Client-side apply would copy a dashboard into an annotation, which is too
    small for it."""
    try:
        api.apply(path, change.body)
    except ApiError as error:
        if error.reason != "NotFound" or "namespaces" not in error.answer:
            raise
        ensure_namespace(api, namespace)
        api.apply(path, change.body)


def annotate_object(api: ClusterApi, ref: ObjectRef, annotations: Mapping[str, str]) -> None:
    """Set annotations of a volume claim or a CRD, unless it is gone."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{ref.name}"
    if ref.namespace:
        path = f"/api/v1/namespaces/{ref.namespace}/persistentvolumeclaims/{ref.name}"
    try:
        api.merge(path, {"metadata": {"annotations": annotations}})
    except ApiError as error:
        if not error.is_missing:
            raise


def ensure_namespace(api: ClusterApi, name: str) -> None:
    """Create a namespace unless it exists. An existing one is not changed."""
    try:
        api.create("/api/v1/namespaces", namespace_body(name))
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
