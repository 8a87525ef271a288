"""Nodes and pods of a cluster in memory, with owners of fields as the API server keeps them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import ApiError
from tests.not_found import not_found

Field = tuple[str, ...]
READY = {"type": "Ready", "status": "True"}
GPU = {"nvidia.com/gpu": "8"}


def make_node(name: str = "n", *, gpus: Mapping[str, str] = GPU, **spec: Any) -> dict[str, Any]:
    """A node that is Ready, of the machine `mine`."""
    status = {"conditions": [READY], "nodeInfo": {"machineID": "mine"}, "allocatable": {**gpus}}
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec, "status": status}


def make_pod(
    name: str, kind: str = "ReplicaSet", *, node: str = "n", owner: str = "o", ready: bool = True
) -> dict[str, Any]:
    """A running pod with a GPU, of a controller of that kind."""
    owners = [{"kind": kind, "name": owner, "uid": owner, "controller": True}] if kind else []
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": name, "ownerReferences": owners},
        "spec": {
            "nodeName": node,
            "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


def patched(there: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """An object after a merge patch (RFC 7386)."""
    result = dict(there)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            result[key] = patched(result.get(key) or {}, value)
        else:
            result[key] = value
    return result


class FakeClusterApi:
    """The doors of ClusterApi that an upgrade uses."""

    context, url = "c", "https://c"

    def __init__(self, *nodes: dict[str, Any], pods: Sequence[dict[str, Any]] = ()) -> None:
        self.nodes = {node["metadata"]["name"]: node for node in nodes or (make_node(),)}
        self.pods = list(pods)
        self.wrote: list[str] = []  # "METHOD path"
        self.before_write: Callable[[], None] = lambda: None  # another client's changes
        self.problems: dict[str, ClusterProblem] = {}  # end of a path -> the answer to a write
        self.problem: ClusterProblem | None = None  # the answer to every request
        self.spoils: Callable[[dict[str, Any]], None] = lambda node: None  # a webhook
        self.owners: dict[str, dict[str, dict[Field, Any]]] = {}  # node -> manager -> fields
        self.version = 1
        self.created: list[dict[str, Any]] = []

    def find(self, path: str) -> dict[str, Any] | None:
        if self.problem:
            raise self.problem
        if path.startswith("/api/v1/nodes/"):
            return self._shown(path.rpartition("/")[2])
        if path.startswith("/api/v1/namespaces/default/pods/"):
            return {"metadata": {"name": "p"}, "status": {"phase": "Succeeded"}}
        return None

    def get(self, path: str, *how: Any) -> dict[str, Any]:
        if (found := self.find(path)) is None:
            raise ApiError(f"GET {path}", 404, not_found(path), self.context)
        return found

    def list(self, path: str, accept: str = "", kept: Any = None, /, **query: str) -> list[Any]:
        if self.problem:
            raise self.problem
        if path == "/api/v1/nodes":
            return [kept(self.get(f"{path}/{name}")) for name in self.nodes]
        selector = query.get("fieldSelector", "")
        if selector.startswith("spec.nodeName="):
            name = selector.partition("=")[2]
            return [pod for pod in self.pods if pod["spec"]["nodeName"] == name]
        return []

    def create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self._write("POST", path)
        self.created.append(dict(body))
        return {"metadata": {"name": "p"}, "status": {}}

    try_create = create

    def attempt(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """An eviction: the pod is gone at once."""
        self._write("POST", path)
        return self._remove(path.split("/")[-2])

    def delete(self, path: str, body: Any = None) -> dict[str, Any]:
        self._write("DELETE", path)
        return self._remove(path.rpartition("/")[2])

    def apply(
        self, path: str, body: Mapping[str, Any], *, manager: str, force: bool = True
    ) -> dict[str, Any]:
        self._write("APPLY", path)
        name = path.rpartition("/")[2]
        node = self.nodes.get(name)
        if node is None or node["metadata"]["uid"] != body["metadata"]["uid"]:
            raise ApiError(f"PATCH {path}", 409, {"message": "uid mismatch"}, self.context)
        wanted = dict(_fields(body))
        owners = self.owners.setdefault(name, {})
        there = dict(_fields(node))
        others = {who: set(fields) for who, fields in owners.items() if who != manager}
        mine = set(owners.get(manager, {}))
        clash = [f for f, value in wanted.items() if f in there and there[f] != value]
        clash = [f for f in clash if f not in mine or any(f in each for each in others.values())]
        if clash and not force:
            raise ApiError(f"PATCH {path}", 409, {"message": f"conflict: {clash}"}, self.context)
        for gone in mine - set(wanted):
            if not any(gone in each for each in others.values()):
                self._set(node, gone, None)
        for field, value in wanted.items():
            if there.get(field) != value:
                self._set(node, field, value)
                for who in others:
                    owners[who].pop(field, None)
        owners[manager] = wanted
        self.spoils(node)
        return self._shown(name) or {}

    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        self._write("MERGE", path)
        name = path.rpartition("/")[2]
        version = patch["metadata"].get("resourceVersion")
        if version not in (None, str(self.version)):
            raise ApiError(f"PATCH {path}", 409, {"message": "was modified"}, self.context)
        self.user(name, patch)
        return self._shown(name) or {}

    def patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        self._write("PATCH", path)
        node = self.nodes[path.rpartition("/")[2]]
        for each in operations:
            part, key = each["path"].strip("/").split("/")
            if each["op"] == "test" and node[part].get(key) != each["value"]:
                raise ApiError(f"PATCH {path}", 422, {"message": "test failed"}, self.context)
            if each["op"] == "replace":
                node[part][key] = copy.deepcopy(each["value"])
        self.version += 1
        return self._shown(node["metadata"]["name"]) or {}

    def user(self, name: str, patch: Mapping[str, Any]) -> None:
        """Another user writes to a node and becomes the only owner of the changed fields."""
        node, owners = self.nodes[name], self.owners.setdefault(name, {})
        before = dict(_fields(node))
        self.nodes[name] = node = patched(node, patch)
        after = dict(_fields(node))
        for field in {f for f in {*before, *after} if before.get(f) != after.get(f)}:
            for fields in owners.values():
                fields.pop(field, None)
            if field in after:
                owners.setdefault("user", {})[field] = after[field]
        for field in dict(_fields(patch)):
            if field in after:
                owners.setdefault("user", {})[field] = after[field]
        self.version += 1

    def cordon(self, name: str = "n") -> None:
        """Like `kubectl cordon`, which sends no write if the node is already cordoned."""
        if not self.nodes[name]["spec"].get("unschedulable"):
            self.user(name, {"spec": {"unschedulable": True}})

    def uncordon(self, name: str = "n") -> None:
        self.user(name, {"spec": {"unschedulable": None}})

    def _write(self, method: str, path: str) -> None:
        self.before_write()
        if self.problem:
            raise self.problem
        for end, problem in self.problems.items():
            if path.endswith(end):
                raise problem
        self.wrote.append(f"{method} {path}")

    def _set(self, node: dict[str, Any], field: Field, value: Any) -> None:
        where = node
        for key in field[:-1]:
            where = where.setdefault(key, {})
        if value is None:
            where.pop(field[-1], None)
        else:
            where[field[-1]] = value
        self.version += 1

    def _remove(self, name: str) -> dict[str, Any]:
        self.pods = [pod for pod in self.pods if pod["metadata"]["name"] != name]
        return {}

    def _shown(self, name: str) -> dict[str, Any] | None:
        """A node as it is read: a copy, with its version and the owners of its cordon."""
        if (node := self.nodes.get(name)) is None:
            return None
        found = copy.deepcopy(node)
        owners = self.owners.get(name, {})
        entries: list[dict[str, Any]] = [
            {
                "manager": manager,
                "operation": "Update" if manager == "user" else "Apply",
                "fieldsV1": {"f:spec": {f"f:{f[1]}": {} for f in fields if f[0] == "spec"}},
            }
            for manager, fields in owners.items()
        ]
        found["metadata"] |= {"resourceVersion": str(self.version), "managedFields": entries}
        return found


def _fields(body: Mapping[str, Any]) -> list[tuple[Field, Any]]:
    """The fields whose owners are kept, with their values."""
    about = body.get("metadata") or {}
    found: list[tuple[Field, Any]] = [
        (("metadata", part, key), value)
        for part in ("annotations", "labels")
        for key, value in (about.get(part) or {}).items()
        if value is not None
    ]
    if (body.get("spec") or {}).get("unschedulable"):
        found.append((("spec", "unschedulable"), True))
    return found
