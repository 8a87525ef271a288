"""The lock of kured, which reboots nodes: while a run holds it, kured begins no reboot. Pure.

It is an annotation of kured's DaemonSet: one lock, or a list of them with --concurrency above 1.
Sources (2026-11): https://github.com/kubereboot/kured/blob/main/pkg/daemonsetlock/daemonsetlock.go,
kured-ds.yaml and kured-ds-signal.yaml there. Users who may create DaemonSets may name one kured:
one counts that runs, and that is allowed what a reboot requires.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

from gpufleet.core.visible import one_line

NAME = "kured"
ANNOTATION = "weave.works/kured-node-lock"  # its default
LASTS = 24 * 3600.0  # seconds for which a lock of ours holds without the run
NANO = 1_000_000_000
LONGEST = 10**20  # nanoseconds of a lock: more than what kured can hold, 2**63
MOST = 100  # locks of one DaemonSet
# https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations/#syntax-and-character-set
QUALIFIED = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
LONGEST_NAME = 253 + 1 + 63

DaemonSet = Mapping[str, Any]
Patch = dict[str, Any]


def is_kured(found: DaemonSet) -> bool:
    metadata = found.get("metadata") or {}
    labelled = (metadata.get("labels") or {}).get("app.kubernetes.io/name") == NAME
    named = labelled or metadata.get("name") == NAME
    runs = ((found.get("status") or {}).get("currentNumberScheduled") or 0) > 0
    spec = _pod_spec(found)
    return bool(
        named and runs and spec.get("hostPID") and any(map(_can_reboot, spec.get("containers", ())))
    )


def _can_reboot(container: Mapping[str, Any]) -> bool:
    """By a command of the host, or with --reboot-method=signal by a signal to its init."""
    context = container.get("securityContext") or {}
    added = (context.get("capabilities") or {}).get("add") or ()
    return bool(context.get("privileged")) or not {"KILL", "CAP_KILL"}.isdisjoint(added)


def held_by_others(found: DaemonSet, ours: str, now: float) -> tuple[str, ...]:
    """The nodes that hold the lock. One that cannot be read is held."""
    locks = _locks(found)
    if locks is None:
        return ("a lock that cannot be read",)
    return tuple(
        one_line(lock["nodeID"])
        for lock in locks
        if lock.get("nodeID") != ours and not _is_over(lock, now)
    )


def locking(found: DaemonSet, ours: str, now: float) -> Patch | None:
    """The merge patch that takes or renews the lock; None while ours holds for long enough."""
    mine = [lock for lock in _locks(found) or () if lock.get("nodeID") == ours]
    if mine and not _is_over(mine[0], now + LASTS / 2):
        return None
    created = datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    lock: dict[str, Any] = {
        "nodeID": ours,
        "metadata": {"unschedulable": False},
        "created": created,
    }
    lock |= {"TTL": int(LASTS * NANO)}
    count = _concurrency(found)
    many: dict[str, Any] = {"maxOwners": count, "locks": [lock] * count}
    return _patch(found, json.dumps(many if count > 1 else lock))


def unlocking(found: DaemonSet, ours: str) -> Patch | None:
    """The merge patch that gives our lock back; None without one."""
    locks = _locks(found) or []
    others = [lock for lock in locks if lock.get("nodeID") != ours]
    if len(others) == len(locks):
        return None
    many = {"maxOwners": _concurrency(found), "locks": others}
    return _patch(found, json.dumps(many) if others else None)


def _patch(found: DaemonSet, text: str | None) -> Patch:
    version = found["metadata"]["resourceVersion"]
    return {"metadata": {"resourceVersion": version, "annotations": {_annotation(found): text}}}


def _locks(found: DaemonSet) -> list[Mapping[str, Any]] | None:
    """The locks there; None for an annotation that cannot be read."""
    text = ((found.get("metadata") or {}).get("annotations") or {}).get(_annotation(found))
    if not text:
        return []
    try:
        value = json.loads(text)
        locks = value.get("locks") or [] if "maxOwners" in value else [value]
        return locks if all(isinstance(lock.get("nodeID"), str) for lock in locks) else None
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None


def _is_over(lock: Mapping[str, Any], now: float) -> bool:
    """Whether a lock has ended; one without a time holds until it is given back."""
    ttl, text = lock.get("TTL"), lock.get("created")
    if not isinstance(ttl, int) or not 0 < ttl <= LONGEST or not isinstance(text, str):
        return False
    try:
        created = datetime.fromisoformat(text.partition(".")[0].rstrip("Z"))
        created = created.replace(tzinfo=timezone.utc)
    except ValueError:
        return False
    return now - created.timestamp() >= ttl / NANO


def _annotation(found: DaemonSet) -> str:
    """Its default for a name that the API refuses: no kured can have its lock there."""
    name = _argument(found, "--lock-annotation")
    return name if len(name) <= LONGEST_NAME and QUALIFIED.fullmatch(name) else ANNOTATION


def _concurrency(found: DaemonSet) -> int:
    text = _argument(found, "--concurrency")
    return min(int(text), MOST) or 1 if text.isdecimal() and len(text) < 6 else 1


def _argument(found: DaemonSet, name: str) -> str:
    """The value of an option of kured; "" where it has its default."""
    for container in _pod_spec(found).get("containers") or ():
        words = [*(container.get("command") or ()), *(container.get("args") or ()), ""]
        for word, following in pairwise(map(str, words)):
            option, joined, value = word.partition("=")
            if option == name:
                return value if joined else following
    return ""


def _pod_spec(found: DaemonSet) -> Mapping[str, Any]:
    return ((found.get("spec") or {}).get("template") or {}).get("spec") or {}
