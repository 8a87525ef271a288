"""The writes to etcd that restore the objects of a cluster."""

from __future__ import annotations

from gpufleet_sandbox.cluster.snapshot import _changes

NODE, LEASE = "/registry/minions/gpu-1", "/registry/leases/kube-node-lease/gpu-1"
SPACE, OLD = "/registry/namespaces/default", "/registry/configmaps/default/old"
WANTED = {NODE: "n", LEASE: "l", SPACE: "s", OLD: "o"}


def test_new_objects_are_deleted_and_missing_or_changed_ones_restored() -> None:
    found = {NODE: "n", LEASE: "l", SPACE: "other", "/registry/pods/a/b": "new"}
    assert _changes(found, WANTED, nodes=True) == {"/registry/pods/a/b": None, SPACE: "s", OLD: "o"}


def test_unchanged_objects_need_no_writes() -> None:
    assert _changes(WANTED, WANTED, nodes=True) == {}


def test_leases_and_events_are_ignored() -> None:
    found = {**WANTED, LEASE: "renewed", "/registry/events/default/x": "e"}
    assert _changes(found, WANTED, nodes=True) == {}


def test_nodes_are_restored_once_and_new_ones_always_deleted() -> None:
    found = {**WANTED, NODE: "a heartbeat later", "/registry/minions/gpu-9": "new"}
    gone = {"/registry/minions/gpu-9": None}
    assert _changes(found, WANTED, nodes=True) == {**gone, NODE: "n"}
    assert _changes(found, WANTED, nodes=False) == gone
    missing = {key: value for key, value in WANTED.items() if key != NODE}
    assert _changes(missing, WANTED, nodes=False) == {NODE: "n"}


def test_owners_are_deleted_before_the_objects_that_they_create() -> None:
    keys = [
        "/registry/pods/a/b", "/registry/replicasets/a/b", "/registry/deployments/a/b",
        "/registry/namespaces/a",
    ]  # fmt: skip
    found = {**WANTED, **dict.fromkeys(keys, "x")}
    assert list(_changes(found, WANTED, nodes=False)) == keys[::-1]
