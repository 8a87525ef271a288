"""Snapshots of a cluster's objects in etcd: read, and restored while its servers run.

This is faster than starting a control plane, which takes seconds of two processors. The API
server, controllers and simulated nodes handle deleted and changed objects as usual: by watches.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet_sandbox.waiting import wait_until

FIRST, LAST = "/registry/", "/registry0"  # every key of Kubernetes begins with the first
OPERATIONS = 100  # of one transaction; etcd refuses more than 128
SECONDS = 60.0
STABLE_POLLS = 10  # polls in a row with the same objects
QUIET_POLLS = 3  # polls in a row, 0.1 s apart, in which controllers added nothing
# Written continuously by running servers: leases and events, and the status of nodes.
HEARTBEATS = ("/registry/leases/", "/registry/events/", "/registry/masterleases/")
NODES = "/registry/minions/"
# Deleted first, as they create other objects.
OWNERS = (
    "apiregistration.k8s.io/", "validatingwebhook", "mutatingwebhook", "namespaces/",
    "horizontalpodautoscalers/", "cronjobs/", "deployments/", "daemonsets/", "statefulsets/",
    "jobs/", "replicasets/",
)  # fmt: skip
WITHOUT_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # etcd is local
Objects = Mapping[str, str]  # key -> value, in base64


@dataclass(frozen=True, slots=True)
class Store:
    """etcd at a URL, by its JSON gateway.

    https://etcd.io/docs/latest/dev-guide/api_grpc_gateway/
    """

    url: str

    def objects(self) -> Objects:
        """All objects of the cluster."""
        request = {"key": _encoded(FIRST), "range_end": _encoded(LAST)}
        found = self._post("kv/range", request).get("kvs", ())
        return {_decoded(one["key"]): one.get("value", "") for one in found}

    def stable_objects(self) -> Objects:
        """All objects, once none was created or deleted for a second."""
        polls: list[Objects] = []

        def stable() -> bool:
            polls.append(self.objects())
            last = [_steady(poll) for poll in polls[-STABLE_POLLS:]]
            return len(last) == STABLE_POLLS and all(poll == last[0] for poll in last)

        if not wait_until(stable, SECONDS):
            raise TimeoutError(f"controllers still created objects after {SECONDS:g} s")
        return polls[-1]

    def restore(self, wanted: Objects) -> None:
        """Restore the objects `wanted`, and wait until they are stable.

        TimeoutError if something creates other objects for SECONDS.
        """
        self._change(_changes(self.objects(), wanted, nodes=True))
        quiet = 0

        def settled() -> bool:
            nonlocal quiet
            changes = _changes(self.objects(), wanted, nodes=False)
            self._change(changes)
            quiet = 0 if changes else quiet + 1
            return quiet >= QUIET_POLLS

        if not wait_until(settled, SECONDS):
            left = sorted(_changes(self.objects(), wanted, nodes=False))
            raise TimeoutError(f"still changing after {SECONDS:g} s: {', '.join(left)}")

    def _change(self, changes: Mapping[str, str | None]) -> None:
        operations = [_operation(key, value) for key, value in changes.items()]
        for first in range(0, len(operations), OPERATIONS):
            self._post("kv/txn", {"success": operations[first : first + OPERATIONS]})

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(f"{self.url}/v3/{path}", json.dumps(body).encode())
        with WITHOUT_PROXY.open(request, timeout=SECONDS) as response:
            found: dict[str, Any] = json.loads(response.read())
        return found


def _changes(found: Objects, wanted: Objects, *, nodes: bool) -> dict[str, str | None]:
    """Key -> the value to write, None to delete; owners first. Pure.

    `nodes`: restore existing nodes too, although their status changes continuously.
    """
    gone = sorted((key for key in found if key not in wanted), key=_rank)
    changed = [
        key
        for key, value in wanted.items()
        if found.get(key) != value and (nodes or key not in found or not key.startswith(NODES))
    ]
    writes = {**dict.fromkeys(gone), **{key: wanted[key] for key in changed}}
    return {key: value for key, value in writes.items() if not key.startswith(HEARTBEATS)}


def _steady(found: Objects) -> set[str]:
    return {key for key in found if not key.startswith(HEARTBEATS)}


def _rank(key: str) -> tuple[int, str]:
    places = [place for place, owner in enumerate(OWNERS) if owner in key]
    return (min(places, default=len(OWNERS)), key)


def _operation(key: str, value: str | None) -> dict[str, Any]:
    name = {"key": _encoded(key)}
    if value is None:
        return {"requestDeleteRange": name}
    return {"requestPut": {**name, "value": value}}


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()
