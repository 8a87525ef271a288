"""The objects of a cluster as etcd holds them: copied, and put back behind its running servers.

A start of a control plane costs seconds of two processors. What its API server, controllers and
simulated nodes do with deleted and changed objects is what they always do: they watch etcd.
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
AT_REST = 10  # looks in a row that show the same objects
QUIET = 3  # looks in a row, a tenth of a second apart, in which controllers added nothing
# Written by running servers all the time: who is alive, what happened; what a node says of itself.
BEATS = ("/registry/leases/", "/registry/events/", "/registry/masterleases/")
NODES = "/registry/minions/"
# What makes other objects goes before them.
OWNERS = (
    "apiregistration.k8s.io/", "validatingwebhook", "mutatingwebhook", "namespaces/",
    "horizontalpodautoscalers/", "cronjobs/", "deployments/", "daemonsets/", "statefulsets/",
    "jobs/", "replicasets/",
)  # fmt: skip
DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is on this machine
Objects = Mapping[str, str]  # key -> value, in base64


@dataclass(frozen=True, slots=True)
class Store:
    """etcd at a URL, by its JSON gateway.

    https://etcd.io/docs/latest/dev-guide/api_grpc_gateway/
    """

    url: str

    def objects(self) -> Objects:
        """All objects of the cluster."""
        asked = {"key": _encoded(FIRST), "range_end": _encoded(LAST)}
        found = self._post("kv/range", asked).get("kvs", ())
        return {_decoded(one["key"]): one.get("value", "") for one in found}

    def objects_at_rest(self) -> Objects:
        """The same, once nothing has come or gone for a second."""
        looks: list[Objects] = []

        def resting() -> bool:
            looks.append(self.objects())
            last = [_steady(look) for look in looks[-AT_REST:]]
            return len(last) == AT_REST and all(look == last[0] for look in last)

        if not wait_until(resting, SECONDS):
            raise TimeoutError(f"its controllers were still at work after {SECONDS:g} s")
        return looks[-1]

    def put_back(self, wanted: Objects) -> None:
        """Make the objects those that are `wanted`, and see that they stay so.

        TimeoutError where something goes on making others for SECONDS.
        """
        self._change(_changes(self.objects(), wanted, nodes=True))
        quiet = 0

        def settled() -> bool:
            nonlocal quiet
            changes = _changes(self.objects(), wanted, nodes=False)
            self._change(changes)
            quiet = 0 if changes else quiet + 1
            return quiet >= QUIET

        if not wait_until(settled, SECONDS):
            left = sorted(_changes(self.objects(), wanted, nodes=False))
            raise TimeoutError(f"still changing after {SECONDS:g} s: {', '.join(left)}")

    def _change(self, changes: Mapping[str, str | None]) -> None:
        operations = [_operation(key, value) for key, value in changes.items()]
        for first in range(0, len(operations), OPERATIONS):
            self._post("kv/txn", {"success": operations[first : first + OPERATIONS]})

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(f"{self.url}/v3/{path}", json.dumps(body).encode())
        with DIRECTLY.open(request, timeout=SECONDS) as answer:
            found: dict[str, Any] = json.loads(answer.read())
        return found


def _changes(found: Objects, wanted: Objects, *, nodes: bool) -> dict[str, str | None]:
    """Key -> the value that it gets, None where it goes, owners first. Pure.

    `nodes`: those that exist are put back too, although what they say of themselves always moves.
    """
    gone = sorted((key for key in found if key not in wanted), key=_rank)
    changed = [
        key
        for key, value in wanted.items()
        if found.get(key) != value and (nodes or key not in found or not key.startswith(NODES))
    ]
    kept = {**dict.fromkeys(gone), **{key: wanted[key] for key in changed}}
    return {key: value for key, value in kept.items() if not key.startswith(BEATS)}


def _steady(found: Objects) -> set[str]:
    return {key for key in found if not key.startswith(BEATS)}


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
