"""What is written to etcd so that a cluster consists of given objects again."""

from __future__ import annotations

from gpufleet_sandbox.cluster.snapshot import _changes

NODE, LEASE = "/registry/minions/gpu-1", "/registry/leases/kube-node-lease/gpu-1"
SPACE, OLD = "/registry/namespaces/default", "/registry/configmaps/default/old"
WANTED = {NODE: "n", LEASE: "l", SPACE: "s", OLD: "o"}


def test_what_came_goes_and_what_went_or_changed_comes_back() -> None:
    found = {NODE: "n", LEASE: "l", SPACE: "other", "/registry/pods/a/b": "new"}
    assert _changes(found, WANTED, nodes=True) == {"/registry/pods/a/b": None, SPACE: "s", OLD: "o"}


def test_nothing_changed_is_nothing_to_do() -> None:
    assert _changes(WANTED, WANTED, nodes=True) == {}


def test_leases_and_events_are_left_alone() -> None:
    found = {**WANTED, LEASE: "renewed", "/registry/events/default/x": "e"}
    assert _changes(found, WANTED, nodes=True) == {}


def test_nodes_are_put_back_once_and_foreign_ones_go_always() -> None:
    found = {**WANTED, NODE: "a heartbeat later", "/registry/minions/gpu-9": "new"}
    gone = {"/registry/minions/gpu-9": None}
    assert _changes(found, WANTED, nodes=True) == {**gone, NODE: "n"}
    assert _changes(found, WANTED, nodes=False) == gone
    missing = {key: value for key, value in WANTED.items() if key != NODE}
    assert _changes(missing, WANTED, nodes=False) == {NODE: "n"}


def test_owners_go_before_what_they_make() -> None:
    keys = [
        "/registry/pods/a/b", "/registry/replicasets/a/b", "/registry/deployments/a/b",
        "/registry/namespaces/a",
    ]  # fmt: skip
    found = {**WANTED, **dict.fromkeys(keys, "x")}
    assert list(_changes(found, WANTED, nodes=False)) == keys[::-1]
