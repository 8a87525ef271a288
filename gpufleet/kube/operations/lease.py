"""The lock of a cluster, for one run at a time on any machine: a Lease in the cluster.

A Lease (coordination.k8s.io/v1, which every Kubernetes from 1.14 on serves) names the run that
holds it. A thread of the run acquires and renews it by compare-and-swap on its resourceVersion.
Another run takes over a Lease after observing that it is not renewed: the clocks of two machines
are never compared. Source: https://kubernetes.io/docs/concepts/architecture/leases/
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from gpufleet.core.identity import new_identity
from gpufleet.core.visible import one_line
from gpufleet.kube import findings
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.kube.parse import seconds_of

NAMESPACE, NAME = "kube-system", "gpufleet"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
DURATION = 60  # seconds without a renewal after which the Lease is free
RENEW = 10.0  # seconds between two renewals
MAX_DURATION = 300  # seconds that another run's Lease may request
LEASE_POLL_SECONDS = 1.0  # seconds between reads of another run's Lease
GAP = 10.0  # seconds between reads after which observation restarts: the API was unavailable
LEASE_REPORT_SECONDS = 10.0  # seconds between two lines of progress
MAX_RENEWAL_TRIES = 5  # for a renewal that conflicts with another one of the same run
MAX_NAME_CHARS = 200  # of a holder's name
_FORBIDDEN, _CONFLICT = 403, 409


def printable_holder(identity: str) -> str:
    """A holder's name, made safe for a finding: any user with write access to Leases may have
    written it."""
    return one_line(identity)[:MAX_NAME_CHARS] or "nobody"


def _clock() -> float:
    """Seconds of a monotonic clock, including suspended time if the system has such a clock."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


@dataclass(slots=True)
class Watched:
    """Another run's Lease, observed with this machine's monotonic clock."""

    version: str | None = None
    since: float = 0.0  # when this resourceVersion was first read
    looked: float = 0.0

    def abandoned(self, lease: Mapping[str, Any], now: float) -> bool:
        """True if it was not renewed for its duration. `now` in seconds."""
        version = str(lease["metadata"]["resourceVersion"])
        if version != self.version or now - self.looked > GAP:
            self.version, self.since = version, now
        self.looked = now
        asked = (lease.get("spec") or {}).get("leaseDurationSeconds")
        known = asked if isinstance(asked, int) and asked > 0 else DURATION
        return now - self.since >= min(known, MAX_DURATION)


def holder_of(lease: Mapping[str, Any] | None) -> str:
    """The holder of a Lease, or ""."""
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")


@dataclass(slots=True)
class Lease:
    """The cluster's Lease in one run. `deletes`: delete it at the end, when gpufleet removes
    everything."""

    api: ClusterApi
    identity: str
    deletes: bool = False
    confirmed: float = field(default=float("-inf"), init=False)  # when this run last renewed it
    _guard: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _ended: threading.Event = field(default_factory=threading.Event, init=False, repr=False)

    def take(self, wait: float, say: Callable[[str], None]) -> None:
        """Acquire the Lease. Waits at most `wait` seconds for another run. Raises ClusterProblem if
        that run still holds it."""
        began = time.monotonic()
        reported = began - LEASE_REPORT_SECONDS
        watched = Watched()
        while True:
            lease = self.read()
            now = time.monotonic()
            holder = holder_of(lease)
            if lease is None or not holder or watched.abandoned(lease, now):
                if self._write(lease, self.identity):
                    return
                continue
            name = printable_holder(holder)
            if now - began >= wait:
                raise ClusterProblem(findings.RUN_IN_PROGRESS(holder=name, seconds=f"{wait:.0f}"))
            if now - reported >= LEASE_REPORT_SECONDS:
                reported = now
                say(f"waiting for the cluster lock, held by {name}: {now - began:.0f} s")
            time.sleep(min(LEASE_POLL_SECONDS, max(began + wait - now, 0)))

    def renew(self) -> bool:
        """Renew the Lease. Returns False if it is no longer ours."""
        for _ in range(MAX_RENEWAL_TRIES):
            lease = self.read()
            if lease is None or holder_of(lease) != self.identity:
                return False
            if self._write(lease, self.identity):
                return True
        return False

    def keep(self) -> None:
        """Renew it until `give_back`, or until another run holds it. Runs in a thread."""
        while not self._ended.wait(RENEW):
            try:
                if not self.renew():
                    return  # `confirm` reports it before the next write
            except ClusterProblem:
                continue  # the API was unavailable

    def confirm(self) -> None:
        """Before a write to the cluster: ensure that the Lease is ours for the next seconds.

        Raises ClusterProblem if another run holds it, for example after this machine was suspended.
        """
        with self._guard:
            if _clock() - self.confirmed < 2 * RENEW:
                return
            if not self.renew():
                holder = printable_holder(holder_of(self.read()))
                raise ClusterProblem(findings.LEASE_LOST(holder=holder))

    def give_back(self) -> None:
        """Release the Lease at the end of the run, if it is still ours. If the API is unavailable,
        the Lease expires after its duration."""
        self._ended.set()
        try:
            for _ in range(MAX_RENEWAL_TRIES):
                lease = self.read()
                if lease is None or holder_of(lease) != self.identity:
                    return
                if (self.deletes and self._delete(lease)) or self._write(lease, None):
                    return
        except ClusterProblem:
            return

    def read(self) -> dict[str, Any] | None:
        """Read the Lease from the API. None if it does not exist."""
        return self.api.find(f"{LEASES}/{NAME}")

    def _delete(self, lease: Mapping[str, Any]) -> bool:
        """Delete the Lease that was read. Returns False if it is forbidden, or has changed."""
        read = {key: lease["metadata"][key] for key in ("uid", "resourceVersion")}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": read}
        try:
            self.api.delete(f"{LEASES}/{NAME}", body)
        except ApiError as error:
            if error.status not in (_FORBIDDEN, _CONFLICT) and not error.is_missing:
                raise
            return error.is_missing
        return True

    def _write(self, lease: Mapping[str, Any] | None, holder: str | None) -> bool:
        """Set `holder` in the Lease that was read. Returns False if another run was faster."""
        body = _body(lease, holder)
        try:
            if lease is None:
                self.api.create(LEASES, body)
            else:
                self.api.replace(f"{LEASES}/{NAME}", body)
        except ApiError as error:
            if error.status != _CONFLICT:
                raise
            return False
        self.confirmed = _clock()
        return True


def _body(lease: Mapping[str, Any] | None, holder: str | None) -> dict[str, Any]:
    """The Lease to write in place of the one that was read."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    metadata = {"name": NAME, "namespace": NAMESPACE}
    if lease:
        metadata["resourceVersion"] = str(lease["metadata"]["resourceVersion"])
    old = (lease or {}).get("spec") or {}
    transitions = int(old.get("leaseTransitions") or 0)
    spec = {"leaseDurationSeconds": DURATION, "renewTime": now, "leaseTransitions": transitions}
    if holder:
        spec |= {"holderIdentity": holder, "acquireTime": old.get("acquireTime") or now}
    if holder and holder != old.get("holderIdentity"):
        spec |= {"acquireTime": now, "leaseTransitions": transitions + 1}
    head = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    return {**head, "metadata": metadata, "spec": spec}


def take_lease(api: ClusterApi, wait: float, say: Callable[[str], None]) -> Lease:
    """Acquire the cluster's Lease and hold it until this process ends.

    `wait`: seconds to wait for another run. After this call, every write of `api` first checks that
    the Lease is still ours. Raises ClusterProblem.
    """
    lease = Lease(copy(api), new_identity())
    lease.take(wait, say)
    threading.Thread(target=lease.keep, daemon=True).start()
    atexit.register(lease.give_back)
    api.before_write = lease.confirm
    return lease


def active_holder(api: ClusterApi) -> str:
    """The holder of the Lease, for a run that changes nothing. "" without a holder, without a
    recent renewal (by the server's clock), or without permission to read the Lease."""
    try:
        lease = Lease(api, "").read()
    except ApiError as error:
        if error.status != _FORBIDDEN:
            raise
        return ""
    renewed = seconds_of(((lease or {}).get("spec") or {}).get("renewTime")) or api.clock
    return holder_of(lease) if api.clock - renewed < 2 * DURATION else ""
