"""Cordons a node by server-side apply, and taints it by compare-and-swap.

The API server records the owners of a field: if a run removes its own fields, those that another
user also owns stay. A server without server-side apply (before Kubernetes 1.16) refuses the cordon.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from gpufleet.drain.nodes import (
    FAILED,
    MAX_REASON,
    NOT_DISRUPTED,
    SCALE_DOWN,
    UNMANAGED,
    UPGRADE_ANNOTATION,
    UPGRADE_FIELD_MANAGER,
    Node,
    Taken,
    annotations_of,
    is_our_cordon,
    taints_of,
)
from gpufleet.drain.pods import TAINT
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError

CONFLICT, UNLIKE = 409, 422  # the latter: a `test` of a JSON patch failed
MAX_CORDON_TRIES = 40  # attempts of a write that conflicts with other writers
FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5  # seconds between them
# annotations that keep autoscalers away; the next ones if others gave a key another value
REQUESTS = ((SCALE_DOWN, NOT_DISRUPTED), (SCALE_DOWN,), ())
NOT_KEPT_TEXT = (
    "the cluster did not keep the cordon of the node as it was written, as where an admission "
    f"webhook removes or rewrites its annotation {UPGRADE_ANNOTATION}: allow it, then run "
    "`gpufleet upgrade` again"
)


class NotOurs(Exception):
    """The run does not own the node. The text says why."""


class CordonNotKept(NotOurs):
    """The cluster changed the written fields."""


def cordon_node(api: ClusterApi, node: Node, taken: Taken, failed: str = "") -> Node:
    """Cordon a node, or change the data written with its cordon. `failed`: why it is left behind.
    Raises CordonNotKept and ApiError."""
    annotations = {UPGRADE_ANNOTATION: taken.as_text()}
    if failed:
        annotations[FAILED] = failed[:MAX_REASON]
    for requests in REQUESTS:
        try:
            labels = {UNMANAGED: "false"} if requests else {}
            written = _apply(api, node, {**annotations, **dict.fromkeys(requests, "true")}, labels)
            break
        except ApiError as error:
            if error.status != CONFLICT or not requests:
                raise
    kept = annotations_of(written)
    if is_our_cordon(written) and all(kept.get(key) == text for key, text in annotations.items()):
        return written
    uncordon_node(api, node)
    raise CordonNotKept(NOT_KEPT_TEXT)


def uncordon_node(api: ClusterApi, node: Node) -> Node:
    """Remove all that a run wrote, except its taint. Fields that other managers also own stay."""
    return api.apply(_path(node), _body(node), manager=UPGRADE_FIELD_MANAGER)


def _apply(
    api: ClusterApi, node: Node, annotations: Mapping[str, str], labels: Mapping[str, str]
) -> Node:
    body = _body(node)
    body["metadata"] |= {"annotations": dict(annotations), "labels": dict(labels)}
    body["spec"] = {"unschedulable": True}
    # without other managers' keys, a conflict is with our own fields, set by another client
    return api.apply(_path(node), body, manager=UPGRADE_FIELD_MANAGER, force=not labels)


def _body(node: Node) -> dict[str, Any]:
    """With the uid, the API does not create a node that was deleted."""
    about = {key: node["metadata"][key] for key in ("name", "uid")}
    return {"apiVersion": "v1", "kind": "Node", "metadata": about}


def _path(node: Node) -> str:
    return f"/api/v1/nodes/{node['metadata']['name']}"


def set_taint(api: ClusterApi, node: Node, run: str) -> Node:
    """Give a node the taint of a run. Raises ApiError as `_swap_taint`."""
    return _swap_taint(api, node, [{"key": TAINT, "value": run, "effect": "NoSchedule"}])


def remove_taint(api: ClusterApi, node: Node) -> Node:
    """Remove the taint of any run from a node. Raises ApiError as `_swap_taint`."""
    return _swap_taint(api, node, [])


def _swap_taint(api: ClusterApi, node: Node, ours: list[dict[str, str]]) -> Node:
    """Write the list of taints if it is unchanged, else read it again. Raises ApiError, also for a
    node that was deleted or registered again since."""
    uid = node["metadata"]["uid"]
    for attempt in range(1, MAX_CORDON_TRIES + 1):
        there = taints_of(node)
        if [each for each in there if each["key"] == TAINT] == ours:
            break
        try:
            return _swapped(api, node, [*(t for t in there if t["key"] != TAINT), *ours])
        except ApiError as error:
            if error.status not in (CONFLICT, UNLIKE) or attempt == MAX_CORDON_TRIES:
                raise
            time.sleep(min(FIRST_PAUSE * 2**attempt, LONGEST_PAUSE))
            node = api.get(_path(node))
            if node["metadata"]["uid"] != uid:
                raise
    return node


def _swapped(api: ClusterApi, node: Node, wanted: list[Any]) -> Node:
    about, there = node["metadata"], taints_of(node)
    if not there:  # a JSON patch cannot test that the list is missing
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
