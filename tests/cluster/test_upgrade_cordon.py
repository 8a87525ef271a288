"""Ownership of a cordon on a real API server: users cordon before, during and after a run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes import client

from gpufleet.drain.nodes import (
    FAILED,
    NOT_DISRUPTED,
    SCALE_DOWN,
    TAINT,
    UNMANAGED,
    UPGRADE_ANNOTATION,
    UPGRADE_FIELD_MANAGER,
    Taken,
    is_cordoned,
    is_our_cordon,
    taints_of,
    taken_of,
)
from gpufleet.drain.operations.cordon import (
    CordonNotKept,
    cordon_node,
    remove_taint,
    set_taint,
    uncordon_node,
)
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.pods import SECONDS

TAKEN = Taken("run-1", {"nvidia.com/gpu": "8"})
ROUNDS = 30  # of the taint while other clients write


class User:
    """Writes what kubectl writes, as its field manager."""

    def __init__(self, api: client.ApiClient, name: str) -> None:
        self.core: Any = client.CoreV1Api(api)
        self.name = name

    def cordon(self) -> None:
        """kubectl writes nothing to a node that is cordoned already."""
        if not self.core.read_node(self.name).spec.unschedulable:
            self._write({"spec": {"unschedulable": True}})

    def uncordon(self) -> None:
        self._write({"spec": {"unschedulable": None}})

    def label(self, key: str, value: str) -> None:
        self._write({"metadata": {"labels": {key: value}}})

    def annotate(self, key: str, value: str) -> None:
        self._write({"metadata": {"annotations": {key: value}}})

    def _write(self, body: dict[str, Any]) -> None:
        self.core.patch_node(self.name, body, field_manager="kubectl")


@pytest.fixture
def api(simulated: Cluster) -> ClusterApi:
    return ClusterApi(KubeAccess(str(simulated.kubeconfig)))


@pytest.fixture
def name(simulated: Cluster) -> Iterator[str]:
    """A node, which nobody has cordoned before or after."""
    core: Any = client.CoreV1Api(simulated.api)
    found: str = core.list_node().items[0].metadata.name
    yield found
    keys = {
        "annotations": dict.fromkeys((UPGRADE_ANNOTATION, FAILED, SCALE_DOWN, NOT_DISRUPTED)),
        "labels": {UNMANAGED: None},
    }
    core.patch_node(found, {"metadata": keys, "spec": {"unschedulable": None, "taints": None}})


@pytest.fixture
def user(simulated: Cluster, name: str) -> User:
    return User(simulated.api, name)


@pytest.fixture
def node(api: ClusterApi, name: str) -> Callable[[], dict[str, Any]]:
    """The node as it is now."""
    return lambda: api.get(f"/api/v1/nodes/{name}")


Read = Callable[[], dict[str, Any]]


def test_a_free_node_is_cordoned_and_free_again(api: ClusterApi, node: Read) -> None:
    before = node()
    assert is_our_cordon(cordon_node(api, before, TAKEN))
    taken = node()
    assert is_our_cordon(taken)
    assert taken_of(taken) == TAKEN
    assert taken["metadata"]["labels"][UNMANAGED] == "false"
    annotations = taken["metadata"]["annotations"]
    assert annotations[SCALE_DOWN] == annotations[NOT_DISRUPTED] == "true"
    uncordon_node(api, taken)
    after = node()
    assert not is_cordoned(after)
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert after["metadata"].get("annotations") == before["metadata"].get("annotations")


def test_the_cordon_of_a_user_before_ours_stays(api: ClusterApi, node: Read, user: User) -> None:
    user.cordon()
    assert not is_our_cordon(node())
    cordon_node(api, node(), TAKEN)
    assert is_our_cordon(node())
    uncordon_node(api, node())
    assert is_cordoned(node())
    assert not is_our_cordon(node())


def test_a_user_who_uncordons_is_seen(api: ClusterApi, node: Read, user: User) -> None:
    cordon_node(api, node(), TAKEN)
    user.uncordon()
    assert not is_our_cordon(node())
    user.cordon()
    assert not is_our_cordon(node())
    uncordon_node(api, node())
    assert is_cordoned(node())
    assert UPGRADE_ANNOTATION not in (node()["metadata"].get("annotations") or {})


def test_a_user_who_cordons_a_cordoned_node_writes_nothing(
    api: ClusterApi, node: Read, user: User
) -> None:
    """A limit: if a user cordons a cordoned node, kubectl sends no write, so the run uncordons
    it."""
    cordon_node(api, node(), TAKEN)
    user.cordon()
    uncordon_node(api, node())
    assert not is_cordoned(node())


def test_a_label_with_another_value_stays(api: ClusterApi, node: Read, user: User) -> None:
    user.label(UNMANAGED, "true")
    assert is_our_cordon(cordon_node(api, node(), TAKEN))
    assert node()["metadata"]["labels"][UNMANAGED] == "true"
    uncordon_node(api, node())
    assert node()["metadata"]["labels"][UNMANAGED] == "true"


def test_a_label_with_the_same_value_stays(api: ClusterApi, node: Read, user: User) -> None:
    user.label(UNMANAGED, "false")
    cordon_node(api, node(), TAKEN)
    uncordon_node(api, node())
    assert node()["metadata"]["labels"][UNMANAGED] == "false"


def test_ours_is_ours_after_a_client_replaced_the_node(
    api: ClusterApi, name: str, node: Read
) -> None:
    cordon_node(api, node(), TAKEN)

    def replaced() -> bool:
        whole = node()
        whole["metadata"]["labels"]["others"] = "here"
        try:
            api.replace(f"/api/v1/nodes/{name}", whole)
        except ApiError:  # the node controller was faster
            return False
        return True

    assert wait_until(replaced, SECONDS)
    assert is_our_cordon(node())
    uncordon_node(api, node())
    assert not is_cordoned(node())


def test_a_second_cordon_writes_nothing(api: ClusterApi, node: Read) -> None:
    entries = [cordon_node(api, node(), TAKEN)["metadata"]["managedFields"] for _ in range(2)]
    ours = [
        [each for each in found if each["manager"] == UPGRADE_FIELD_MANAGER] for found in entries
    ]
    assert ours[0] == ours[1] != []


def test_what_a_user_wrote_over_the_annotation_is_taken_back(
    api: ClusterApi, node: Read, user: User
) -> None:
    cordon_node(api, node(), TAKEN)
    user.annotate(UPGRADE_ANNOTATION, "mine")
    assert taken_of(node()) == Taken()
    assert taken_of(cordon_node(api, node(), TAKEN)) == TAKEN


def test_a_node_that_is_gone_is_not_created(api: ClusterApi, name: str, node: Read) -> None:
    """A server-side apply creates what is not there, unless it names the uid."""
    old = node()
    old["metadata"] |= {"name": "not-there"}
    with pytest.raises(ApiError) as caught:
        uncordon_node(api, old)
    assert caught.value.status in (404, 409)
    assert api.find("/api/v1/nodes/not-there") is None
    old["metadata"] |= {"name": name, "uid": "00000000-0000-0000-0000-000000000000"}
    with pytest.raises(ApiError):
        cordon_node(api, old, TAKEN)
    assert not is_cordoned(node())


def test_a_cordon_that_the_cluster_rewrites_is_refused(
    api: ClusterApi, node: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutating webhook rewrites the request, and the API server's answer has the result."""
    apply = api.apply

    def rewritten(path: str, body: Any, **how: Any) -> dict[str, Any]:
        about = {**body["metadata"], "annotations": {UPGRADE_ANNOTATION: "rewritten"}}
        return apply(path, {**body, "metadata": about}, **how)

    monkeypatch.setattr(api, "apply", rewritten)
    with pytest.raises(CordonNotKept):
        cordon_node(api, node(), TAKEN)
    monkeypatch.undo()
    assert not is_cordoned(uncordon_node(api, node()))


def test_the_taint_and_a_writer_that_never_rests(
    simulated: Cluster, api: ClusterApi, name: str, node: Read
) -> None:
    """Another client adds and removes a taint, and labels the node, in a loop: no write of either
    is lost. It does not cordon: Kubernetes 1.18 itself then writes all taints, uncompared."""
    path, other = f"/api/v1/nodes/{name}", ClusterApi(KubeAccess(str(simulated.kubeconfig)))
    mine = {"key": "others", "value": "x", "effect": "NoSchedule"}
    ends, wrong, wrote = threading.Event(), list[str](), list[int]()

    def others() -> None:
        there = False
        while not ends.is_set():
            found = other.get(path)
            kept = [taint for taint in taints_of(found) if taint["key"] != "others"]
            if (len(kept) < len(taints_of(found))) is not there:
                wrong.append(f"the taint of others: {taints_of(found)}, expected: {there}")
            version = {"resourceVersion": found["metadata"]["resourceVersion"]}
            wanted = kept if there else [*kept, mine]
            try:
                other.merge(path, {"metadata": version, "spec": {"taints": wanted}})
            except ApiError as error:
                if error.status != 409:
                    wrong.append(str(error))
            else:
                there = not there
                wrote.append(1)
            other.merge(path, {"metadata": {"labels": {"others": f"{len(wrote)}"}}})

    thread = threading.Thread(target=others)
    thread.start()
    try:
        for number in range(ROUNDS):
            set_taint(api, node(), f"run-{number}")
            ours = [taint.get("value") for taint in taints_of(node()) if taint["key"] == TAINT]
            assert ours == [f"run-{number}"]
            remove_taint(api, node())
            assert TAINT not in [taint["key"] for taint in taints_of(node())]
    finally:
        ends.set()
        thread.join(60)
    assert not wrong
    assert wrote
