"""One run at a time per cluster, whoever started it and where: a Lease in the cluster.

A Lease (coordination.k8s.io/v1, which every Kubernetes from 1.14 on serves) names who is at work.
It is taken and renewed by compare-and-swap on its resourceVersion. One that nobody renews is taken
over, and that is judged by watching it: clocks of two machines are never compared.
Source: https://kubernetes.io/docs/concepts/architecture/leases/
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from gpufleet.core.identity import new_identity
from gpufleet.core.visible import one_line
from gpufleet.kube import findings
from gpufleet.kube.kubeconfig import private_folder
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ApiError, ClusterApi
from gpufleet.kube.operations.lease_keeper import RENEW, Keeper

NAMESPACE, NAME = "kube-system", "gpufleet"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
DURATION = 30  # seconds without a renewal after which a holder counts as gone
LONGEST = 300  # seconds that a Lease may ask others to wait for a renewal
POLL = 1.0  # seconds between two looks at another run's Lease
GAP = 10.0  # seconds between two looks after which watching starts again: the API was away
REPORT = 10.0  # seconds between two lines of progress
TRIES = 5  # of a renewal that collides with another one of the same run
_CONFLICT = 409
SHOWN = 200  # characters of a holder's name


def shown(identity: str) -> str:
    """A holder's name as a finding may repeat it: what is there, anybody may have written who may
    write Leases."""
    return one_line(identity)[:SHOWN] or "nobody"


def _clock() -> float:
    """Seconds that pass while the machine is suspended, too, where its system has such a clock."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


@dataclass(slots=True)
class Watched:
    """Another run's Lease, read again and again on this machine's monotonic clock."""

    version: str | None = None
    since: float = 0.0  # when this version was first seen
    looked: float = 0.0

    def abandoned(self, lease: Mapping[str, Any], now: float) -> bool:
        """Whether it did not change for as long as it lasts, `now` in seconds."""
        version = str(lease["metadata"]["resourceVersion"])
        if version != self.version or now - self.looked > GAP:
            self.version, self.since = version, now
        self.looked = now
        return now - self.since >= _lasts(lease)


def _lasts(lease: Mapping[str, Any]) -> int:
    seconds = (lease.get("spec") or {}).get("leaseDurationSeconds")
    return min(seconds, LONGEST) if isinstance(seconds, int) and seconds > 0 else DURATION


def holder_of(lease: Mapping[str, Any] | None) -> str:
    """Who has it; "" where nobody has."""
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")


@dataclass(slots=True)
class Lease:
    """The cluster's Lease, as one run uses it."""

    api: ClusterApi
    identity: str
    confirmed: float = field(default=float("-inf"), init=False)  # when it was last renewed here

    def take(self, wait: float, say: Callable[[str], None]) -> None:
        """Take it, at most `wait` seconds after it was first seen with another run. Raises
        ClusterProblem where that one keeps it."""
        began = time.monotonic()
        reported = began - REPORT
        watched = Watched()
        while True:
            lease = self.read()
            now = time.monotonic()
            holder = holder_of(lease)
            if lease is None or not holder or watched.abandoned(lease, now):
                if self._write(lease, self.identity):
                    return
                continue
            if now - began >= wait:
                raise ClusterProblem(
                    findings.RUN_IN_PROGRESS(holder=shown(holder), seconds=f"{wait:.0f}")
                )
            if now - reported >= REPORT:
                reported = now
                say(f"waiting for {shown(holder)}, who is at work here: {now - began:.0f} s")
            time.sleep(min(POLL, max(began + wait - now, 0)))

    def renew(self) -> bool:
        """Say that we are still at work; False where the Lease is no longer ours."""
        for _ in range(TRIES):
            lease = self.read()
            if lease is None or holder_of(lease) != self.identity:
                return False
            if self._write(lease, self.identity):
                return True
        return False

    def confirm(self) -> None:
        """Before something is written to the cluster: the Lease is ours for some time to come.

        Raises ClusterProblem where another run has it, as after a suspend of this machine.
        """
        if _clock() - self.confirmed < RENEW:
            return
        if not self.renew():
            holder = shown(holder_of(self.read()))
            raise ClusterProblem(findings.LEASE_LOST(holder=holder))

    def give_back(self) -> None:
        """Leave it to the next one, where it is still ours."""
        for _ in range(TRIES):
            lease = self.read()
            if lease is None or holder_of(lease) != self.identity or self._write(lease, None):
                return

    def read(self) -> dict[str, Any] | None:
        """As the API has it; None where there is none yet."""
        return self.api.find(f"{LEASES}/{NAME}")

    def _write(self, lease: Mapping[str, Any] | None, holder: str | None) -> bool:
        """Put `holder` into the Lease as it was read; False where another run was faster."""
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
    """The Lease as it is to be, in place of the one that was read."""
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
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": spec,
    }


@dataclass(slots=True)
class HeldLease:
    """A Lease that is ours until this process ends, and its keeper."""

    lease: Lease
    keeper: Keeper

    @property
    def lifeline(self) -> int:
        """The descriptor that a helm inherits: while it lives, the Lease is kept."""
        return self.keeper.lifeline

    def confirm(self) -> None:
        """Before every write. Raises ClusterProblem where another run has the Lease."""
        self.lease.confirm()
        self.keeper.ensure()

    def give_back(self) -> None:
        """The run is over. Where the API is away, the keeper goes on trying for a moment."""
        try:
            self.lease.give_back()
        except ClusterProblem:
            self.keeper.dismiss()
        else:
            self.keeper.end()


def take_lease(api: ClusterApi, wait: float, say: Callable[[str], None]) -> HeldLease:
    """Take the cluster's Lease and keep it until this process ends, however it ends.

    `wait`: seconds to wait for another holder. From here on every write of `api` is preceded by a
    look whether the Lease is still ours. Raises ClusterProblem.
    """
    lease = Lease(copy(api), new_identity())
    lease.take(wait, say)
    order = {
        "identity": lease.identity,
        "context": api.kubeconfig.context,
        "kubeconfig": api.kubeconfig.content,
        "folder": str(private_folder()),
    }
    held = HeldLease(lease, Keeper(order))
    held.keeper.ensure()
    atexit.register(held.give_back)
    api.before_write = held.confirm
    return held


def at_work(api: ClusterApi) -> str:
    """Who has the Lease, for a run that changes nothing; "" where nobody has, or where this user
    may not see it."""
    try:
        return holder_of(Lease(api, "").read())
    except ApiError as error:
        if error.status != 403:
            raise
        return ""
