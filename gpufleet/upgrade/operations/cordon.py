"""The cordon of a node by server-side apply, and its taint by compare-and-swap.

The API server keeps who owns a field: what another user wrote, too, stays when a run removes its
own. A server without server-side apply, before Kubernetes 1.16, refuses the cordon.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.nodes import (
    FAILED,
    MANAGER,
    MARK,
    MAX_REASON,
    SCALE_DOWN,
    TAINT,
    UNMANAGED,
    Node,
    Taken,
    annotations_of,
    is_ours,
    taints_of,
)

CONFLICT, UNLIKE = 409, 422  # the latter: a `test` of a JSON patch failed
TRIES = 40  # of a write that others were faster than
FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5  # seconds between them
NOT_KEPT = (
    "the cluster did not keep the cordon of the node as it was written, as where an admission "
    f"webhook removes or rewrites its annotation {MARK}: allow it, then run `gpufleet upgrade` "
    "again"
)


class NotOurs(Exception):
    """A node is not the run's; why, in words."""


class NotKept(NotOurs):
    """The cluster changed what was written."""


def cordon(api: ClusterApi, node: Node, taken: Taken, failed: str = "") -> Node:
    """Cordon a node, or change what is written with its cordon. `failed`: why it is left behind.
    Raises NotKept and ApiError."""
    annotations = {MARK: taken.as_text()} | ({FAILED: failed[:MAX_REASON]} if failed else {})
    foreign = {"annotations": {SCALE_DOWN: "true"}, "labels": {UNMANAGED: "false"}}
    try:
        written = _apply(api, node, {**annotations, **foreign["annotations"]}, foreign["labels"])
    except ApiError as error:
        if error.status != CONFLICT:
            raise
        written = _apply(api, node, annotations, {})  # others gave these keys other values
    kept = annotations_of(written)
    if is_ours(written) and all(kept.get(key) == text for key, text in annotations.items()):
        return written
    uncordon(api, node)
    raise NotKept(NOT_KEPT)


def uncordon(api: ClusterApi, node: Node) -> Node:
    """Remove what a run has written, but for its taint; what others own, too, stays."""
    return api.apply(_path(node), _body(node), manager=MANAGER)


def _apply(
    api: ClusterApi, node: Node, annotations: Mapping[str, str], labels: Mapping[str, str]
) -> Node:
    body = _body(node)
    body["metadata"] |= {"annotations": dict(annotations), "labels": dict(labels)}
    body["spec"] = {"unschedulable": True}
    # without keys of others, what is in the way can only be our own, in the words of another client
    return api.apply(_path(node), body, manager=MANAGER, force=not labels)


def _body(node: Node) -> dict[str, Any]:
    """The uid keeps the API from creating a node that was deleted."""
    about = {key: node["metadata"][key] for key in ("name", "uid")}
    return {"apiVersion": "v1", "kind": "Node", "metadata": about}


def _path(node: Node) -> str:
    return f"/api/v1/nodes/{node['metadata']['name']}"


def swap_taint(api: ClusterApi, node: Node, run: str | None) -> Node:
    """Give a node the taint of a run, or with None remove it: the list of taints is written if it
    is still what was read, else read again. Raises ApiError, also for a node that was deleted or
    registered again since."""
    uid = node["metadata"]["uid"]
    ours = [] if run is None else [{"key": TAINT, "value": run, "effect": "NoSchedule"}]
    for attempt in range(1, TRIES + 1):
        there = taints_of(node)
        if [each for each in there if each["key"] == TAINT] == ours:
            break
        try:
            return _swapped(api, node, [*(t for t in there if t["key"] != TAINT), *ours])
        except ApiError as error:
            if error.status not in (CONFLICT, UNLIKE) or attempt == TRIES:
                raise
            time.sleep(min(FIRST_PAUSE * 2**attempt, LONGEST_PAUSE))
            node = api.get(_path(node))
            if node["metadata"]["uid"] != uid:
                raise
    return node


def _swapped(api: ClusterApi, node: Node, wanted: list[Any]) -> Node:
    about, there = node["metadata"], taints_of(node)
    if not there:  # a JSON patch cannot test that there is no list
        version = {key: about[key] for key in ("uid", "resourceVersion")}
        return api.merge(_path(node), {"metadata": version, "spec": {"taints": wanted}})
    return api.patch(
        _path(node),
        [
            {"op": "test", "path": "/metadata/uid", "value": about["uid"]},
            {"op": "test", "path": "/spec/taints", "value": there},
            {"op": "replace", "path": "/spec/taints", "value": wanted},
        ],
    )
