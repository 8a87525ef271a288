"""Deletions of a cluster's objects, with a fake API and a fake clock."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.gpu_stack.operations import removal_deletes as removal
from gpufleet.gpu_stack.operations.removal_deletes import GLANCE, PATIENCE, ClusterRemoval
from gpufleet.gpu_stack.operations.removal_reads import Contents
from gpufleet.gpu_stack.remains import Leaving, is_leaving
from gpufleet.gpu_stack.removal import StackRemoval
from gpufleet.kube.facts import ObjectRef
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import ApiError
from tests.not_found import not_found

REF = ObjectRef("Namespace", "", "monitoring")
ABOUT = {"uid": "1", "resourceVersion": "7"}
LEAVING = {"metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
THEIRS = {"metadata": {"name": "y"}}


class Api:
    """Has one object: `left`, one state per read; the last one stays."""

    def __init__(self, *left: Any, status: int = 0) -> None:
        self.left = list(left)
        self.status = status
        self.deleted: list[Any] = []

    def find(self, path: str) -> Any:
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]

    def delete(self, path: str, body: Any) -> None:
        self.deleted.append(body)
        if self.status:
            answer = not_found(path) if self.status == 404 else {}
            raise ApiError(f"DELETE {path}", self.status, answer, "test")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which passes by sleeping."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(removal, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    monkeypatch.setattr(removal, "state", SimpleNamespace(is_executing=True))
    return now


def opened(api: Api) -> ClusterRemoval:
    run: Any = SimpleNamespace(cluster=SimpleNamespace(api=api))
    return ClusterRemoval(run, StackRemoval(), Leaving())


def delete(api: Api, about: dict[str, Any] = ABOUT) -> ClusterRemoval:
    found = opened(api)
    removal._delete(found, REF, "/x", about)
    return found


def item(uid: str = "1", **about: Any) -> dict[str, Any]:
    return {"metadata": {"uid": uid, **about}}


def test_an_object_is_deleted_as_it_was_read_and_waited_for(clock: list[float]) -> None:
    api = Api(item(), item(), None)
    assert delete(api).acted
    assert [body["preconditions"] for body in api.deleted] == [ABOUT]
    assert clock[0] > 0


def test_an_object_that_is_gone_or_recreated_is_not_waited_for(clock: list[float]) -> None:
    delete(Api(None, status=404))
    delete(Api(item("2")))
    assert clock[0] == 0


def test_an_object_that_is_being_deleted_is_only_waited_for() -> None:
    api = Api(item(), None)
    delete(api, {**ABOUT, "deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert api.deleted == []


def test_one_that_changed_meanwhile_stays() -> None:
    with pytest.raises(ApiError):
        delete(Api(item(), status=409))


def test_one_that_does_not_go_is_reported_with_its_finalizers(clock: list[float]) -> None:
    with pytest.raises(ClusterProblem) as caught:
        delete(Api(item(finalizers=["example.com/wait"])))
    (found,) = caught.value.findings
    assert (found.code, "example.com/wait" in found.message) == ("GF979", True)
    assert PATIENCE <= clock[0] < PATIENCE + 2


def looked(found: ClusterRemoval, look: Callable[[], Contents]) -> Contents:
    return removal.settled(found, look, is_leaving)


def with_leaving(*refs: ObjectRef) -> Contents:
    return Contents(dict.fromkeys(refs, LEAVING), item=item())


@pytest.mark.parametrize(("acted", "seconds"), [(True, PATIENCE), (False, GLANCE)])
def test_objects_that_go_by_themselves_are_waited_for(
    acted: bool, seconds: float, clock: list[float]
) -> None:
    found = opened(Api(None))
    found.acted = acted
    left = [with_leaving(REF), with_leaving()]
    assert looked(found, lambda: left.pop(0)) == with_leaving()
    assert looked(found, lambda: with_leaving(REF)) == with_leaving(REF)
    assert seconds <= clock[0] < seconds + 2


def test_objects_of_others_are_not_waited_for(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = opened(Api(None))
    both = Contents({REF: LEAVING, ObjectRef("Pod", "team", "y"): THEIRS}, item=item())
    assert looked(found, lambda: both) == both
    assert looked(found, lambda: Contents(both.objects)).item is None
    monkeypatch.setattr(removal, "state", SimpleNamespace(is_executing=False))
    assert looked(found, lambda: with_leaving(REF)) == with_leaving(REF)
    assert clock[0] == 0
