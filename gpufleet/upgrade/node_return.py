"""The way back of a node of a cluster: what it had before the run, and what may be left. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpufleet.upgrade.marks import NEVER, UNKNOWN, Cordon, is_of
from gpufleet.upgrade.nodes import (
    FAILED,
    MARK,
    SCALE_DOWN,
    SET,
    TAINT,
    UNMANAGED,
    UNMARKED,
    Node,
    Patch,
    annotations_of,
    has_cordon,
    has_values,
    is_cordoned,
    is_other,
    labels_of,
    mark_of,
    taints_of,
    taints_without,
)

NOT_KNOWN: Mapping[str, Any] = {}


def returning(node: Node, run: str, cordon: Cordon = NEVER, machine: str = "") -> Patch | None:
    """The merge patch that gives a node the state from before the run; None where nothing of it is
    there. `cordon`: by the record of the run, for a node without its mark: it stays cordoned where
    its cordon may be another user's. `machine`: as for `why_not_begun`; another one loses what is
    the run's by its name alone."""
    mark, known = mark_of(node), cordon.mark
    if is_of(mark, run):
        return _restored(node, known or mark, is_theirs=cordon.theirs)
    if is_other(node, machine):
        return _without_rest(node, run)
    if _is_cordoned_by(node, run, cordon):
        return _restored(node, known)
    lost = mark in ({}, UNKNOWN) or (mark.get("run") == run and cordon.seen)
    known = known if lost and (cordon.seen or has_values(node)) else {}
    return _without_rest(node, run, known, unknown=cordon != NEVER)


def _is_cordoned_by(node: Node, run: str, cordon: Cordon) -> bool:
    """Whether a cordon without its whole mark is the run's. Values of label and annotation that
    were there before prove nothing; where the mark is gone, others may have removed it."""
    mark, known = mark_of(node), cordon.mark
    if cordon.theirs or not known or not has_cordon(node):
        return False
    if mark.get("run") == run:
        before = (known.get("managed"), known.get("scale_down"))
        return cordon.seen or cordon.sure or before != SET
    return cordon.sure and not cordon.seen and mark in ({}, UNKNOWN)


def _restored(node: Node, mark: Mapping[str, Any], *, is_theirs: bool = False) -> Patch:
    """The merge patch for the state that a mark remembers. `is_theirs`: a cordon, which stays."""
    stays = is_theirs or mark.get("unschedulable")
    return {
        "metadata": {
            "resourceVersion": node["metadata"]["resourceVersion"],
            "annotations": {
                MARK: None,
                FAILED: None,
                **_earlier(annotations_of(node), SCALE_DOWN, "true", mark.get("scale_down")),
            },
            "labels": _earlier(labels_of(node), UNMANAGED, "false", mark.get("managed")),
        },
        "spec": {
            "unschedulable": True if stays and is_cordoned(node) else None,
            "taints": [each for each in taints_of(node) if each.get("key") not in (TAINT, FAILED)],
        },
    }


def _earlier(
    there: Mapping[str, str], key: str, ours: str, earlier: str | None
) -> dict[str, str | None]:
    """The earlier value of a key; {} where others have changed it since."""
    return {key: earlier} if there.get(key) == ours else {}


def _without_rest(
    node: Node, run: str, known: Mapping[str, Any] = NOT_KNOWN, *, unknown: bool = False
) -> Patch | None:
    """The merge patch for a node whose cordon may be others': without taint and mark of the run,
    with the values that are known from before; None where nothing of these is there. `unknown`:
    also without a mark that cannot be read."""
    annotations: dict[str, str | None] = {}
    labels: dict[str, str | None] = {}
    mark = mark_of(node)
    if (mark.get("run") == run and not is_of(mark, run)) or (unknown and mark == UNKNOWN):
        annotations = {MARK: None}
    if known:
        annotations |= _earlier(annotations_of(node), SCALE_DOWN, "true", known.get("scale_down"))
        labels = _earlier(labels_of(node), UNMANAGED, "false", known.get("managed"))
    left = taints_without(node, run)
    spec = {} if left == taints_of(node) else {"taints": left}
    if not (annotations or labels or spec):
        return None
    version = {"resourceVersion": node["metadata"]["resourceVersion"]}
    return {"metadata": {**version, "annotations": annotations, "labels": labels}, "spec": spec}


def left_on(node: Node, cordon: Cordon) -> str:
    """What may be of a run on a node whose mark others removed, with the earlier values in it; ""
    if nothing, or if another run is at work on it. `cordon`: by the record of the run; NEVER: the
    node never was the run's."""
    if mark_of(node):
        return ""
    known = cordon.mark
    there = {
        f"label {UNMANAGED}=false": (labels_of(node).get(UNMANAGED), known.get("managed"), "false"),
        f"annotation {SCALE_DOWN}=true": (
            annotations_of(node).get(SCALE_DOWN), known.get("scale_down"), "true"
        ),
    }  # fmt: skip
    keys = [key for key, (now, before, ours) in there.items() if now == ours != before]
    was_ours = cordon != NEVER
    maybe = f"{' and '.join(keys)} of its node may be of the run" if keys and was_ours else ""
    return "; ".join(filter(None, (UNMARKED if is_cordoned(node) else "", maybe)))
