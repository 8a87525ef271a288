"""A node of a cluster during its upgrade: cordon, annotation, taint. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gpufleet.core.names import counted
from gpufleet.upgrade.findings.nodes import NODE_ODD
from gpufleet.upgrade.gpus import gpus_of, odd_gpus
from gpufleet.upgrade.marks import is_of, pending_mark, read_mark

MARK = "gpufleet/upgrade"  # annotation: the run, and whether the node was cordoned before
TAINT = "gpufleet/upgrade"  # keeps DaemonSets from starting GPU clients again during the change
FAILED = "gpufleet/upgrade-failed"  # annotation and taint of a node that was left behind
CORDONED = "another user cordoned the node"
UNMARKED = (
    "its node is cordoned without the mark of the run: another user cordoned it or removed the mark"
)
GONE = "its node is not in the cluster any more"
UNCORDONED = "another user uncordoned it during the run"
TAKEN_BACK = (
    "its node is in service: another user took it back, or it was registered again. What it runs "
    "now was not checked"
)
MARK_REFUSED = (
    f"the cluster did not keep the annotation {MARK} of the node, as where an admission webhook "
    "removes or rewrites it: allow it, then run `gpufleet upgrade` again"
)
UNMANAGED = "k8saas.nvidia.com/ManagedByNVSentinel"  # label: NVSentinel leaves the node alone
SCALE_DOWN = "cluster-autoscaler.kubernetes.io/scale-down-disabled"  # annotation
SET = ("false", "true")  # the values of both that the cordon of a run sets
SKIP = "nvidia.com/gpu-driver-upgrade.skip"  # label of a node that is not to be upgraded
SKIPPED = f"the node has the label {SKIP}=true"

NO_GPUS: Mapping[str, str] = {}
LARGEST_MARK = 8192  # characters; the API allows annotations of 256 KiB
LONGEST = 1000  # characters of a reason: the API limits annotations
OTHER_MACHINE = "another machine has its name now"

Node = Mapping[str, Any]
Patch = dict[str, Any]


def mark_of(node: Node) -> dict[str, Any]:
    """What the run wrote down on the node; {} without one."""
    return read_mark(annotations_of(node).get(MARK))


def mark_text(node: Node) -> str | None:
    """The mark as it is; None without one."""
    return annotations_of(node).get(MARK)


def is_cordoned(node: Node) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def is_ready(node: Node) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def is_left_behind(node: Node) -> bool:
    """Whether the roll-back of the node failed, in this run or in another one."""
    return FAILED in annotations_of(node)


def machine_of(node: Node) -> str:
    """The machine id that the kubelet has reported; "" without one."""
    about = (node.get("status") or {}).get("nodeInfo")
    return str(about.get("machineID") or "") if isinstance(about, dict) else ""


def why_not_begun(node: Node, run: str, machine: str = "") -> str:
    """Why a node is not to be cordoned by this run; "" if it may be, or is already. `machine`: the
    id of the host that it was when the run was planned."""
    if is_other(node, machine):
        return OTHER_MACHINE
    there = mark_of(node)
    if is_of(there, run):
        return "" if is_cordoned(node) else UNCORDONED
    if there.get("run", run) != run:
        return f"run {there.get('run')} of gpufleet is at work on the node"
    if is_cordoned(node):
        return CORDONED
    if labels_of(node).get(SKIP) == "true":
        return SKIPPED
    return why_odd(node) if is_ready(node) else "the node is not Ready"


def why_odd(node: Node) -> str:
    """Why the record of a run cannot have what a node is before its cordon; "" if it can."""
    problem = odd_gpus(node)
    if not problem and len(_new_mark(node, "", "", gpus_of(node))) > LARGEST_MARK:
        problem = (
            f"its GPUs, its label {UNMANAGED} and its annotation {SCALE_DOWN} have more than "
            f"{counted(LARGEST_MARK, 'character')}"
        )
    return odd(problem) if problem else ""


def odd(problem: str) -> str:
    """A finding of the host of a node."""
    found = NODE_ODD(problem=problem)
    return f"{found.code} {found.message}"


def is_other(node: Node, machine: str) -> bool:
    """Whether a node of that name is another machine now, where both are known."""
    return bool(machine) and machine_of(node) not in ("", machine)


def why_not_ours(node: Node | None, run: str, machine: str = "") -> str:
    """Why this run does not have a node out of service, by its mark and cordon; "" if it has.
    `machine`: as for `why_not_begun`."""
    if node is None:
        return "the node is not in the cluster any more"
    if is_other(node, machine):
        return OTHER_MACHINE
    if not is_of(mark_of(node), run):
        return "the node has no mark of the run: it was replaced, or another user removed it"
    return "" if is_cordoned(node) else UNCORDONED


def why_not_kept(node: Node, run: str) -> str:
    """Why a node whose cordon was begun does not have it with its mark; "" if it has, and where it
    may still be cordoned."""
    mark = mark_of(node)
    gone = mark.get("run") != run or (has_cordon(node) and not is_of(mark, run))
    return MARK_REFUSED if gone else ""


def has_cordon(node: Node) -> bool:
    """Whether a node has all that the cordon of a run sets, besides its mark."""
    return is_cordoned(node) and has_values(node)


def has_values(node: Node) -> bool:
    """Whether label and annotation are as the cordon of a run sets them."""
    values = (labels_of(node).get(UNMANAGED), annotations_of(node).get(SCALE_DOWN))
    return values == SET


def marking(node: Node, run: str, since: str) -> Patch | None:
    """The merge patch that writes only that the run is about to cordon a node; None if it has."""
    if is_of(mark_of(node), run):
        return None
    version = {"resourceVersion": node["metadata"]["resourceVersion"]}
    return {"metadata": {**version, "annotations": {MARK: pending_mark(run, since)}}}


def is_marked(node: Node, run: str, since: str) -> bool:
    """Whether a node has exactly what `marking` writes."""
    return mark_text(node) == pending_mark(run, since)


def unmarking(node: Node) -> Patch:
    """The merge patch that removes what a webhook made of a mark."""
    version = {"resourceVersion": node["metadata"]["resourceVersion"]}
    return {"metadata": {**version, "annotations": {MARK: None}}}


def cordoning(node: Node, run: str, since: str, gpus: Mapping[str, str] = NO_GPUS) -> Patch | None:
    """The merge patch that takes a node out of service; None if this run has done it.

    The version makes it fail where the node was changed since it was read. `gpus`: what it offers.
    """
    if is_of(mark_of(node), run):
        return None
    return {
        "metadata": {
            "resourceVersion": node["metadata"]["resourceVersion"],
            "annotations": {MARK: _new_mark(node, run, since, gpus), SCALE_DOWN: "true"},
            "labels": {UNMANAGED: "false"},
        },
        "spec": {"unschedulable": True},
    }


def _new_mark(node: Node, run: str, since: str, gpus: Mapping[str, str]) -> str:
    """The mark of a node that is about to be cordoned."""
    mark = {
        "run": run,
        "since": since,
        "unschedulable": is_cordoned(node),
        "managed": labels_of(node).get(UNMANAGED),
        "scale_down": annotations_of(node).get(SCALE_DOWN),
        "gpus": dict(gpus),
    }
    return json.dumps(mark, sort_keys=True)


def tainting(node: Node, run: str, *, there: bool, clients: Sequence[str] = ()) -> Patch | None:
    """The merge patch that adds or removes the taint of the run, which keeps GPU clients away; None
    for a node that others took back. `clients`: that are there; the mark remembers them."""
    if why_not_ours(node, run):
        return None
    if not there:
        left = taints_without(node, run)
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        return None if left == taints_of(node) else {"metadata": version, "spec": {"taints": left}}
    others = [each for each in taints_of(node) if each.get("key") != TAINT]
    taints = [*others, {"key": TAINT, "value": run, "effect": "NoSchedule"}]
    mark = mark_of(node)
    known = sorted({*(mark.get("clients") or ()), *clients})
    if taints == list(taints_of(node)) and known == (mark.get("clients") or []):
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
    """The merge patch for a node whose roll-back failed: tainted, with the reason; None for one
    that is not the run's any more, and for one that says so already: a user may be at work on it.
    """
    if why_not_ours(node, run) or FAILED in annotations_of(node):
        return None
    others = [each for each in taints_of(node) if each.get("key") not in (TAINT, FAILED)]
    return {
        "metadata": {
            "resourceVersion": node["metadata"]["resourceVersion"],
            "annotations": {FAILED: reason[:LONGEST]},
        },
        "spec": {
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


def labels_of(node: Node) -> Mapping[str, str]:
    return (node.get("metadata") or {}).get("labels") or {}


def annotations_of(node: Node) -> Mapping[str, str]:
    return (node.get("metadata") or {}).get("annotations") or {}


def taints_of(node: Node) -> list[Mapping[str, Any]]:
    return list((node.get("spec") or {}).get("taints") or ())


def taints_without(node: Node, run: str) -> list[Mapping[str, Any]]:
    """All but that of the run."""
    return [
        each for each in taints_of(node) if (each.get("key"), each.get("value")) != (TAINT, run)
    ]
