"""Holds kured's lock in a cluster while nodes are out of service."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.kured import held_by_others, is_kured, locking, unlocking
from gpufleet.upgrade.operations.readable import readable

DAEMONSETS = "/apis/apps/v1/daemonsets"
FORBIDDEN, CONFLICT = 403, 409
TRIES = 5  # of a write that others were faster than


class KuredLock:
    """Of the DaemonSets of kured in one cluster, usually none or one."""

    def __init__(self, api: ClusterApi, run: str) -> None:
        self.api, self.owner = api, f"gpufleet-{run}"

    @readable
    def taken(self) -> tuple[str, ...]:
        """Take it where it is free, or renew it; else the nodes that hold it. Raises ApiError."""
        if holders := self._holders():
            return holders
        self._write(self._locking)
        return self._holders()  # kured may have been faster

    @readable
    def give_back(self) -> None:
        """Raises ApiError."""
        self._write(lambda found: unlocking(found, self.owner))

    def _holders(self) -> tuple[str, ...]:
        now = time.time()
        return tuple(
            node for found in self._all() for node in held_by_others(found, self.owner, now)
        )

    def _locking(self, found: Any) -> Any:
        """The patch that takes the lock; None where another has it."""
        now = time.time()
        return None if held_by_others(found, self.owner, now) else locking(found, self.owner, now)

    def _all(self) -> list[Any]:
        """A user who may not list them runs beside a kured that it does not know of."""
        try:
            return [each for each in self.api.list(DAEMONSETS) if is_kured(each)]
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
            return []

    def _write(self, make: Callable[[Any], Any]) -> None:
        """Write what is to be changed; again where others were faster."""
        for left in reversed(range(TRIES)):
            try:
                for found in self._all():
                    if patch := make(found):
                        about = found["metadata"]
                        folder = f"/apis/apps/v1/namespaces/{about['namespace']}/daemonsets"
                        self.api.merge(f"{folder}/{about['name']}", patch)
            except ApiError as error:
                if error.status != CONFLICT or not left:
                    raise
            else:
                return
