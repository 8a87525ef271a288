"""A node of a cluster during its upgrade: cordon, annotation, taint, and the way back. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

MARK = "gpufleet/upgrade"  # annotation: the run, and whether the node was cordoned before
TAINT = "gpufleet/upgrade"  # keeps DaemonSets from starting GPU clients again during the change
FAILED = "gpufleet/upgrade-failed"  # annotation and taint of a node that was left behind
CORDONED = "another user cordoned the node"
TAKEN_BACK = (
    "its node has no mark of the run and is not cordoned: another user took it back, or it was "
    "registered again. What it runs now was not checked"
)
MARK_REFUSED = (
    f"the cluster did not keep the annotation {MARK} of the node, as where an admission webhook "
    "removes or rewrites it: allow it, then run `gpufleet upgrade` again"
)
UNMANAGED = "k8saas.nvidia.com/ManagedByNVSentinel"  # label: NVSentinel leaves the node alone
SCALE_DOWN = "cluster-autoscaler.kubernetes.io/scale-down-disabled"  # annotation
SKIP = "nvidia.com/gpu-driver-upgrade.skip"  # label of a node that is not to be upgraded
SKIPPED = f"the node has the label {SKIP}=true"

_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
NO_GPUS: Mapping[str, str] = {}
LONGEST = 1000  # characters of a reason: the API limits annotations
OTHER_MACHINE = "another machine has its name now"

Node = Mapping[str, Any]
Patch = dict[str, Any]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_label_or_none(value: Any) -> bool:
    """The API takes back no label that it does not allow: the node would stay out of service."""
    return value is None or (isinstance(value, str) and _LABEL.fullmatch(value) is not None)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


FIELDS: Mapping[str, Callable[[Any], bool]] = {  # of a mark, and whether a run wrote the value
    "run": _is_text,
    "since": _is_text,
    "pending": lambda value: isinstance(value, bool),  # the node is not cordoned yet
    "unschedulable": lambda value: isinstance(value, bool),
    "managed": _is_label_or_none,
    "scale_down": _is_text_or_none,
    "gpus": _is_table,
    "clients": _is_list,
}
UNKNOWN = {"run": "?"}  # mark that cannot be used


def mark_of(node: Node) -> dict[str, Any]:
    """What the run wrote down on the node; {} without one. A node can write it, too: fields that no
    run writes are left out, and a mark that cannot be used is that of an unknown run."""
    text = _annotations(node).get(MARK)
    if not text:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return dict(UNKNOWN)
    if not isinstance(found, dict) or not isinstance(found.get("run"), str):
        return dict(UNKNOWN)
    return {key: value for key, value in found.items() if key in FIELDS and FIELDS[key](value)}


def _is_of(mark: Mapping[str, Any], run: str) -> bool:
    """Whether it is that of a node which this run has cordoned."""
    return mark.get("run") == run and not mark.get("pending")


def is_cordoned(node: Node) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def is_ready(node: Node) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def is_left_behind(node: Node) -> bool:
    """Whether the roll-back of the node failed, in this run or in another one."""
    return FAILED in _annotations(node)


def machine_of(node: Node) -> str:
    """The machine id that the kubelet has reported; "" without one."""
    about = (node.get("status") or {}).get("nodeInfo")
    return str(about.get("machineID") or "") if isinstance(about, dict) else ""


def why_not_begun(node: Node, run: str, machine: str = "") -> str:
    """Why a node is not to be cordoned by this run; "" if it may be, or is already. `machine`: the
    id of the host that it was when the run was planned."""
    if machine and machine_of(node) not in ("", machine):
        return OTHER_MACHINE
    there = mark_of(node)
    if _is_of(there, run):
        return "" if is_cordoned(node) else "another user uncordoned it during the run"
    if there.get("run", run) != run:
        return f"run {there.get('run')} of gpufleet is at work on the node"
    if is_cordoned(node):
        return CORDONED
    if _labels(node).get(SKIP) == "true":
        return SKIPPED
    return "" if is_ready(node) else "the node is not Ready"


def why_not_ours(node: Node | None, run: str) -> str:
    """Why a node does not have the mark of this run; "" if it has."""
    if node is None:
        return "the node is not in the cluster any more"
    if not _is_of(mark_of(node), run):
        return "the node has no mark of the run: it was replaced, or another user removed it"
    return ""


def marking(node: Node, run: str, since: str) -> Patch | None:
    """The merge patch that writes only that the run is about to cordon a node; None if it has."""
    if _is_of(mark_of(node), run):
        return None
    version = {"resourceVersion": node["metadata"]["resourceVersion"]}
    return {"metadata": {**version, "annotations": {MARK: _pending(run, since)}}}


def is_marked(node: Node, run: str, since: str) -> bool:
    """Whether a node has exactly what `marking` writes."""
    return _annotations(node).get(MARK) == _pending(run, since)


def unmarking(node: Node) -> Patch:
    """The merge patch that removes what a webhook made of a mark."""
    version = {"resourceVersion": node["metadata"]["resourceVersion"]}
    return {"metadata": {**version, "annotations": {MARK: None}}}


def _pending(run: str, since: str) -> str:
    return json.dumps({"pending": True, "run": run, "since": since}, sort_keys=True)


def cordoning(node: Node, run: str, since: str, gpus: Mapping[str, str] = NO_GPUS) -> Patch | None:
    """The merge patch that takes a node out of service; None if this run has done it.

    The version makes it fail where the node was changed since it was read. `gpus`: what it offers.
    """
    if _is_of(mark_of(node), run):
        return None
    labels, annotations = _labels(node), _annotations(node)
    mark = {
        "run": run,
        "since": since,
        "unschedulable": is_cordoned(node),
        "managed": labels.get(UNMANAGED),
        "scale_down": annotations.get(SCALE_DOWN),
        "gpus": dict(gpus),
    }
    return {
        "metadata": {
            "resourceVersion": node["metadata"]["resourceVersion"],
            "annotations": {MARK: json.dumps(mark, sort_keys=True), SCALE_DOWN: "true"},
            "labels": {UNMANAGED: "false"},
        },
        "spec": {"unschedulable": True},
    }


def returning(node: Node, run: str) -> Patch | None:
    """The merge patch that gives a node the state from before the run; without the mark of the run,
    which others removed, the one that removes its taint. None where nothing of it is there."""
    mark = mark_of(node)
    if mark.get("run") != run:
        return _without_taint(node, run)
    if mark.get("pending"):  # nothing else of the run is there
        return unmarking(node)
    return {
        "metadata": {
            "resourceVersion": node["metadata"]["resourceVersion"],
            "annotations": {MARK: None, FAILED: None, SCALE_DOWN: mark.get("scale_down")},
            "labels": {UNMANAGED: mark.get("managed")},
        },
        "spec": {
            "unschedulable": True if mark.get("unschedulable") else None,
            "taints": [each for each in _taints(node) if each.get("key") not in (TAINT, FAILED)],
        },
    }


def _without_taint(node: Node, run: str) -> Patch | None:
    left = [each for each in _taints(node) if (each.get("key"), each.get("value")) != (TAINT, run)]
    if left == _taints(node):
        return None
    version = {"resourceVersion": node["metadata"]["resourceVersion"]}
    return {"metadata": version, "spec": {"taints": left}}


def tainting(node: Node, run: str, *, there: bool, clients: Sequence[str] = ()) -> Patch | None:
    """The merge patch that adds or removes the taint of the run, which keeps GPU clients away; none
    is added to a node without its mark. `clients`: that are there; the mark remembers them."""
    if not there:
        return _without_taint(node, run)
    if why_not_ours(node, run):
        return None
    others = [each for each in _taints(node) if each.get("key") != TAINT]
    taints = [*others, {"key": TAINT, "value": run, "effect": "NoSchedule"}]
    mark = mark_of(node)
    known = sorted({*(mark.get("clients") or ()), *clients})
    if taints == list(_taints(node)) and known == (mark.get("clients") or []):
        return None
    patch: Patch = {
        "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
        "spec": {"taints": taints},
    }
    if clients:
        text = json.dumps({**mark, "clients": known}, sort_keys=True)
        patch["metadata"]["annotations"] = {MARK: text}
    return patch


def leaving_behind(node: Node, run: str, reason: str) -> Patch | None:
    """The merge patch for a node whose roll-back failed: cordoned, tainted, with the reason; None
    for another node of its name, and for one that says so already: a user may be at work on it."""
    if why_not_ours(node, run) or FAILED in _annotations(node):
        return None
    others = [each for each in _taints(node) if each.get("key") not in (TAINT, FAILED)]
    return {
        "metadata": {
            "resourceVersion": node["metadata"]["resourceVersion"],
            "annotations": {FAILED: reason[:LONGEST]},
        },
        "spec": {
            "unschedulable": True,
            "taints": [*others, {"key": FAILED, "value": "true", "effect": "NoSchedule"}],
        },
    }


def patched(node: Node, patch: Mapping[str, Any]) -> dict[str, Any]:
    """The node after a merge patch (RFC 7386)."""
    result = dict(node)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            result[key] = patched(result.get(key) or {}, value)
        else:
            result[key] = value
    return result


def _labels(node: Node) -> Mapping[str, str]:
    return (node.get("metadata") or {}).get("labels") or {}


def _annotations(node: Node) -> Mapping[str, str]:
    return (node.get("metadata") or {}).get("annotations") or {}


def _taints(node: Node) -> list[Mapping[str, Any]]:
    return list((node.get("spec") or {}).get("taints") or ())
