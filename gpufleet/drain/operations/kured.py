"""Holds the lock of kured, which reboots nodes, while nodes are out of service.

The lock is an annotation of kured's DaemonSet: one lock, or a list with --concurrency above 1.
Sources (2026-11): https://github.com/kubereboot/kured/blob/main/pkg/daemonsetlock/daemonsetlock.go,
kured-ds.yaml and kured-ds-signal.yaml there. Any user who may create DaemonSets can name one kured.
Only one that uses the host's processes counts, because a reboot requires that.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

from gpufleet.core.visible import one_line
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError

KURED_NAME = "kured"
ANNOTATION = "weave.works/kured-node-lock"  # its default
LASTS = 24 * 3600.0  # seconds after which our lock expires without the run
NANO = 1_000_000_000
MAX_LOCKS = 100  # in one DaemonSet
FORBIDDEN, CONFLICT = 403, 409
MAX_KURED_TRIES = 5  # attempts of a write that conflicts with other writers

Fields = Mapping[str, Any]  # of a DaemonSet, or of a lock


class KuredLock:
    """The locks of kured's DaemonSets in one cluster, usually none or one. Raises ApiError."""

    def __init__(self, api: ClusterApi, run: str, clock: Callable[[], float] = time.time) -> None:
        self.api, self.owner, self._clock = api, f"gpufleet-{run}", clock
        self._written = 0.0  # time of the last write

    def taken(self) -> tuple[str, ...]:
        """Take a free lock or renew ours. Returns the nodes that hold the others."""
        if not (holders := self._holders(self._all())):
            self._write(self._taking)
            holders = self._holders(self._all())  # kured may have been faster
        return holders

    def keep(self) -> None:
        """Renew our lock long before it expires: a drain may wait for days."""
        if self._clock() - self._written > LASTS / 4:
            self._write(self._taking)

    def give_back(self) -> None:
        self._write(self._giving_back)

    def _holders(self, daemonsets: Sequence[Fields]) -> tuple[str, ...]:
        """The nodes that hold the lock. A lock that cannot be read counts as held."""
        locks = [lock for found in daemonsets for lock in _locks(found)]
        others = [lock for lock in locks if lock["nodeID"] != self.owner]
        return tuple(one_line(lock["nodeID"]) for lock in others if not self._is_over(lock))

    def _is_over(self, lock: Fields) -> bool:
        """True if a lock has expired. A lock without a time is held until it is released."""
        ttl, text = lock.get("TTL"), lock.get("created")
        if not isinstance(ttl, int) or ttl <= 0 or not isinstance(text, str):
            return False
        try:
            created = datetime.fromisoformat(text.partition(".")[0].rstrip("Z"))
        except ValueError:
            return False
        began = created.replace(tzinfo=timezone.utc).timestamp()
        return (self._clock() - began) * NANO >= ttl

    def _taking(self, found: Fields) -> str | None:
        """The annotation with our lock, or None if another node holds the lock."""
        if self._holders([found]):
            return None
        now = datetime.fromtimestamp(self._clock(), timezone.utc)
        lock = {
            "nodeID": self.owner,
            "metadata": {"unschedulable": False},
            "created": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "TTL": int(LASTS * NANO),
        }
        count = _concurrency(found)
        many = {"maxOwners": count, "locks": [lock] * count}  # fewer would leave a reboot to kured
        return json.dumps(many if count > 1 else lock)

    def _giving_back(self, found: Fields) -> str | None:
        """The annotation without our lock ("": remove it), or None if we hold no lock."""
        locks = _locks(found)
        others = [lock for lock in locks if lock["nodeID"] != self.owner]
        if len(others) == len(locks):
            return None
        return json.dumps({"maxOwners": _concurrency(found), "locks": others}) if others else ""

    def _all(self) -> list[Fields]:
        """The DaemonSets of kured. Empty if the user may not list them: kured is then ignored."""
        try:
            return [each for each in self.api.list("/apis/apps/v1/daemonsets") if _is_kured(each)]
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
            return []

    def _write(self, make: Callable[[Fields], str | None], tries: int = MAX_KURED_TRIES) -> None:
        """Write the changed annotations. Reads and writes again after a conflict."""
        self._written = self._clock()
        try:
            for found in self._all():
                if (text := make(found)) is not None:
                    about = found["metadata"]
                    path = f"/apis/apps/v1/namespaces/{about['namespace']}/daemonsets"
                    patch = {"resourceVersion": about["resourceVersion"]}
                    key = _argument(found, "--lock-annotation") or ANNOTATION
                    patch |= {"annotations": {key: text or None}}
                    self.api.merge(f"{path}/{about['name']}", {"metadata": patch})
        except ApiError as error:
            if error.status != CONFLICT or tries == 1:
                raise
            self._write(make, tries - 1)


def _is_kured(found: Fields) -> bool:
    about, status = found["metadata"], found.get("status") or {}
    named = KURED_NAME in (about["name"], (about.get("labels") or {}).get("app.kubernetes.io/name"))
    runs = bool(status.get("currentNumberScheduled"))
    return named and runs and bool(found["spec"]["template"]["spec"].get("hostPID"))


def _locks(found: Fields) -> list[Fields]:
    """The locks of a DaemonSet. One that cannot be read has no owner and no end."""
    key = _argument(found, "--lock-annotation") or ANNOTATION
    text = (found["metadata"].get("annotations") or {}).get(key)
    try:
        value = json.loads(text or '{"maxOwners": 1}')
        locks = value.get("locks") or [] if "maxOwners" in value else [value]
        return [{**lock, "nodeID": str(lock["nodeID"])} for lock in locks]
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return [{"nodeID": "a lock that cannot be read"}]


def _concurrency(found: Fields) -> int:
    text = _argument(found, "--concurrency")
    return min(int(text), MAX_LOCKS) or 1 if text.isdecimal() and len(text) < 6 else 1


def _argument(found: Fields, name: str) -> str:
    """The value of an option of kured or of its variable, or "" if neither is set.

    Source: https://github.com/kubereboot/kured/pull/464 (read 2026-11-30)
    """
    variable = f"KURED_{name.removeprefix('--').replace('-', '_').upper()}"
    value = ""
    for container in found["spec"]["template"]["spec"]["containers"]:
        own = {each["name"]: each.get("value") for each in container.get("env") or ()}
        value = value or str(own.get(variable) or "")
        words = [*(container.get("command") or ()), *(container.get("args") or ()), ""]
        for word, following in pairwise(map(str, words)):
            option, joined, text = word.partition("=")
            if option == name:
                return text if joined else following
    return value
