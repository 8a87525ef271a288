"""The Lease of a cluster, with a fake API and a fake clock."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.kube.operations import lease as cluster_lease
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.lease import (
    DURATION,
    Lease,
    Watched,
    active_holder,
    holder_of,
    printable_holder,
)
from gpufleet.kube.operations.refused import ApiError


class Api:
    """Stores one Lease like an API server. `before`: called once before the next write."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.writes = 0
        self.before: Any = None
        self.status = 0
        self.status_of_delete = 0
        self.clock = 0  # of the server

    def find(self, path: str) -> dict[str, Any] | None:
        if self.status:
            raise ApiError(f"GET {path}", self.status, {}, "test")
        return self.lease

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._meet()
        if self.lease is not None:
            raise ApiError(f"POST {path}", 409, {}, "test")
        return self._put(body)

    def replace(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._meet()
        assert self.lease
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise ApiError(f"PUT {path}", 409, {}, "test")
        return self._put(body)

    def delete(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._meet()
        assert self.lease
        if self.status_of_delete:
            raise ApiError(f"DELETE {path}", self.status_of_delete, {}, "test")
        if body["preconditions"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise ApiError(f"DELETE {path}", 409, {}, "test")
        self.lease = None
        return {}

    def _meet(self) -> None:
        meeting, self.before = self.before, None
        if meeting:
            meeting()

    def _put(self, body: dict[str, Any]) -> dict[str, Any]:
        self.writes += 1
        metadata = {**body["metadata"], "uid": "1", "resourceVersion": str(self.writes)}
        self.lease = {**body, "metadata": metadata}
        return self.lease

    @property
    def holder(self) -> str:
        return holder_of(self.lease)


class Clock:
    """Time that only sleep() advances. `during`: called in each sleep; `suspended`: in seconds."""

    CLOCK_BOOTTIME = 7

    def __init__(self) -> None:
        self.now = 1000.0
        self.suspended = 0.0
        self.during: Any = lambda: None

    def monotonic(self) -> float:
        return self.now

    def clock_gettime(self, clock: int) -> float:
        assert clock == self.CLOCK_BOOTTIME
        return self.now + self.suspended

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 0.01)
        self.during()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(cluster_lease, "time", found)
    return found


def lease(api: Api, who: str) -> Lease:
    return Lease(api, who)  # type: ignore[arg-type]


def nobody_listens(line: str) -> None:
    """Progress that no test reads."""


def test_it_is_acquired_released_and_acquired_again(clock: Clock) -> None:
    api = Api()
    first = lease(api, "ada")
    first.take(0, nobody_listens)
    assert api.holder == "ada"
    first.give_back()
    assert api.holder == ""
    lease(api, "grace").take(0, nobody_listens)
    assert api.lease
    assert (api.holder, api.lease["spec"]["leaseTransitions"]) == ("grace", 2)
    first.give_back()
    assert api.holder == "grace"
    assert not first.renew()


def test_it_is_renewed_until_it_is_released_or_lost(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = Api()
    ada = lease(api, "ada")
    ada.take(0, nobody_listens)
    waits = iter([False, False, False, True])
    monkeypatch.setattr(ada, "_ended", SimpleNamespace(wait=lambda seconds: next(waits)))
    api.status = 503  # for one renewal
    meeting = api.find

    def find(path: str) -> Any:
        try:
            return meeting(path)
        finally:
            api.status = 0

    monkeypatch.setattr(api, "find", find)
    ada.keep()
    assert api.writes == 3  # the first write acquired it
    api.lease = {**(api.lease or {}), "spec": {"holderIdentity": "grace"}}
    waits = iter([False])
    ada.keep()
    assert api.writes == 3


def test_a_run_waits_for_one_that_is_renewed_and_then_reports_it(clock: Clock) -> None:
    api = Api()
    ada = lease(api, "ada@one, process 7, since noon")
    ada.take(0, nobody_listens)
    clock.during = ada.renew
    said: list[str] = []
    with pytest.raises(ClusterProblem) as caught:
        lease(api, "grace").take(100, said.append)
    (found,) = caught.value.findings
    assert (found.code, "ada@one, process 7, since noon" in found.message) == ("GF899", True)
    assert 100 <= clock.now - 1000 < 102
    assert len(said) == 10
    assert api.holder.startswith("ada")


@pytest.mark.parametrize(("asked", "seconds"), [(DURATION, DURATION), (10**9, 300), (0, DURATION)])
def test_one_without_renewals_is_taken_over_by_the_local_clock(
    clock: Clock, asked: int, seconds: int
) -> None:
    api = Api()
    lease(api, "ada").take(0, nobody_listens)
    assert api.lease
    api.lease["spec"] |= {"leaseDurationSeconds": asked, "renewTime": "2999-01-01T00:00:00.0Z"}
    lease(api, "grace").take(600, nobody_listens)
    assert api.holder == "grace"
    assert seconds <= clock.now - 1000 < seconds + 2


def test_observation_restarts_after_an_api_outage() -> None:
    """During an outage the holder could not renew its lease either."""
    watched = Watched()
    found = {"metadata": {"resourceVersion": "1"}, "spec": {"leaseDurationSeconds": 30}}
    assert not watched.abandoned(found, 0.0)
    assert not watched.abandoned(found, 9.0)
    assert not watched.abandoned(found, 60.0)
    assert not any(watched.abandoned(found, 60.0 + second) for second in range(30))
    assert watched.abandoned(found, 90.0)


def test_one_of_two_concurrent_runs_acquires_it(clock: Clock) -> None:
    api = Api()
    ada = lease(api, "ada")
    for _ in range(2):  # it is missing, then it exists without a holder
        api.before = lambda: ada.take(0, nobody_listens)
        with pytest.raises(ClusterProblem):
            lease(api, "grace").take(0, nobody_listens)
        assert api.holder == "ada"
        ada.give_back()


def test_before_a_write_it_is_renewed_and_a_loss_is_reported(clock: Clock) -> None:
    api = Api()
    ada = lease(api, "ada")
    ada.take(0, nobody_listens)
    ada.confirm()
    assert api.writes == 1
    clock.now += 21
    api.before = ada.renew  # its thread renews it at the same moment
    ada.confirm()
    assert api.writes == 3
    clock.now += 70
    lease(api, "grace").take(90, nobody_listens)
    with pytest.raises(ClusterProblem) as caught:
        ada.confirm()
    assert [found.code for found in caught.value.findings] == ["GF823"]
    assert api.holder == "grace"


def test_a_lease_lost_while_the_machine_was_suspended_is_noticed(clock: Clock) -> None:
    api = Api()
    ada = lease(api, "ada")
    ada.take(0, nobody_listens)
    lease(api, "grace").take(90, nobody_listens)
    ada.confirmed = clock.now  # the monotonic clock stopped
    clock.suspended = 60.0
    with pytest.raises(ClusterProblem):
        ada.confirm()


def test_the_holder_is_reported_without_a_write() -> None:
    api = Api()
    assert active_holder(api) == ""  # type: ignore[arg-type]
    lease(api, "ada").take(0, nobody_listens)
    assert active_holder(api) == "ada"  # type: ignore[arg-type]
    api.clock = int(time.time()) + 200
    assert active_holder(api) == ""  # type: ignore[arg-type]
    api.clock, api.status = 0, 403
    assert active_holder(api) == ""  # type: ignore[arg-type]
    assert api.writes == 1


def test_a_holders_name_is_shown_as_one_short_line() -> None:
    assert printable_holder("ada\n\x1b[31m" + "x" * 500) == r"ada\n\x1b[31m" + "x" * 187


def test_at_the_end_of_a_removal_it_is_deleted_unless_another_run_holds_it(clock: Clock) -> None:
    api = Api()
    ada = lease(api, "ada")
    ada.take(0, nobody_listens)
    ada.deletes = True
    api.before = ada.renew  # its thread renews at the same moment
    ada.give_back()
    assert api.lease is None
    lease(api, "grace").take(0, nobody_listens)
    ada.give_back()
    assert api.holder == "grace"


def test_a_lease_that_may_not_be_deleted_is_released(clock: Clock) -> None:
    api = Api()
    ada = lease(api, "ada")
    ada.take(0, nobody_listens)
    api.status_of_delete = 403
    ada.deletes = True
    ada.give_back()
    assert (api.lease is not None, api.holder) == (True, "")


def test_threads_of_a_run_do_not_take_the_lease_from_each_other() -> None:
    class Slow(Api):
        def find(self, path: str) -> dict[str, Any] | None:
            found = super().find(path)
            time.sleep(0.02)
            return found

    api = Slow()
    lease = Lease(api, "mine")  # type: ignore[arg-type]
    lease.take(0, print)
    lease.confirmed = float("-inf")
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(lambda _: lease.confirm(), range(16))) == [None] * 16
    assert api.writes == 2
