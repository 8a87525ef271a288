"""The lock of kured, which reboots nodes: while a run holds it, kured begins no reboot. Pure.

It is an annotation of kured's DaemonSet: one lock, or a list of them with --concurrency above 1.
Source: https://github.com/kubereboot/kured/blob/main/pkg/daemonsetlock/daemonsetlock.go (2026-11)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

from gpufleet.core.visible import one_line

NAME = "kured"
ANNOTATION = "weave.works/kured-node-lock"  # its default
LASTS = 24 * 3600.0  # seconds for which a lock of ours holds without the run
NANO = 1_000_000_000

DaemonSet = Mapping[str, Any]
Patch = dict[str, Any]


def is_kured(found: DaemonSet) -> bool:
    metadata = found.get("metadata") or {}
    labelled = (metadata.get("labels") or {}).get("app.kubernetes.io/name") == NAME
    return labelled or metadata.get("name") == NAME


def held_by_others(found: DaemonSet, ours: str, now: float) -> tuple[str, ...]:
    """The nodes that hold the lock. One that cannot be read is held."""
    locks = _locks(found)
    if locks is None:
        return ("a lock that cannot be read",)
    return tuple(
        one_line(str(lock.get("nodeID")))
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
        return locks if all(isinstance(lock, dict) for lock in locks) else None
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None


def _is_over(lock: Mapping[str, Any], now: float) -> bool:
    """Whether a lock has ended; one without a time holds until it is given back."""
    ttl = lock.get("TTL")
    if not isinstance(ttl, int) or ttl <= 0:
        return False
    text = str(lock.get("created")).partition(".")[0].rstrip("Z")
    try:
        created = datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
    except ValueError:
        return False
    return now - created.timestamp() >= ttl / NANO


def _annotation(found: DaemonSet) -> str:
    return _argument(found, "--lock-annotation") or ANNOTATION


def _concurrency(found: DaemonSet) -> int:
    text = _argument(found, "--concurrency")
    return int(text) if text.isdecimal() and len(text) < 6 and int(text) else 1


def _argument(found: DaemonSet, name: str) -> str:
    """The value of an option of kured; "" where it has its default."""
    spec = (((found.get("spec") or {}).get("template") or {}).get("spec")) or {}
    for container in spec.get("containers") or ():
        words = [*(container.get("command") or ()), *(container.get("args") or ()), ""]
        for word, following in pairwise(map(str, words)):
            option, joined, value = word.partition("=")
            if option == name:
                return value if joined else following
    return ""
