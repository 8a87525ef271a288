"""kured's lock: a run waits for it, acquires it, renews it and releases it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from gpufleet.drain.operations.kured import ANNOTATION, LASTS, MAX_KURED_TRIES, KuredLock
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from tests.fakes.cluster_api import patched

pytestmark = pytest.mark.claim("An upgrade waits for kured's lock.", level=1)

NOW, HOUR = 1_000_000_000.0, 3_600_000_000_000  # 2001-09-09T01:46:40Z
OURS = "gpufleet-r"
UNREADABLE = ("a lock that cannot be read",)


def daemonset(lock: Any = None, *args: str, name: str = "kured", **about: Any) -> dict[str, Any]:
    text = lock if isinstance(lock, str) else json.dumps(lock)
    annotations = {ANNOTATION: text} if lock is not None else {}
    about |= {"name": name, "namespace": "kube-system", "resourceVersion": "1"}
    pod = {"hostPID": True, "containers": [{"args": list(args)}]}
    return {
        "metadata": {**about, "annotations": annotations},
        "spec": {"template": {"spec": pod}},
        "status": {"currentNumberScheduled": 3},
    }


def lock(node: str, ttl: int = 0, created: str = "2001-09-09T01:46:40.5Z") -> dict[str, Any]:
    return {"nodeID": node, "metadata": {}, "created": created, "TTL": ttl}


class Api:
    """DaemonSets in memory. `faster`: writes of others before ours; `status`: of every write."""

    def __init__(self, *there: dict[str, Any], faster: int = 0, status: int = 0) -> None:
        self.there, self.faster, self.status, self.tried = list(there), faster, status, 0

    def list(self, path: str) -> list[Any]:
        if self.status == 403:
            raise ApiError("GET", 403, {}, "c")
        return self.there

    def merge(self, path: str, patch: Mapping[str, Any]) -> None:
        self.tried += 1
        if self.status or self.tried <= self.faster:
            raise ApiError("PATCH", self.status or 409, {}, "c")
        name = path.removeprefix("/apis/apps/v1/namespaces/kube-system/daemonsets/")
        self.there = [
            patched(each, patch) if each["metadata"]["name"] == name else each
            for each in self.there
        ]

    def written(self, key: str = ANNOTATION) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.there[0]["metadata"]["annotations"][key])
        return found


def kured(api: Api, run: str = "r", now: float = NOW) -> KuredLock:
    return KuredLock(cast(ClusterApi, api), run, clock=lambda: now)


@pytest.mark.parametrize(
    ("there", "holders"),
    [
        (None, ()),
        (lock("n"), ("n",)),
        (lock("n", HOUR, "2001-09-09T01:00:00Z"), ("n",)),
        (lock("n", HOUR, "2001-09-09T00:00:00Z"), ()),
        (lock("n", HOUR, "yesterday"), ("n",)),
        (lock("n", 10**400, "2001-09-09T00:00:00Z"), ("n",)),
        (lock("n", -1, "2001-09-09T00:00:00Z"), ("n",)),
        (lock(OURS), ()),
        ({"maxOwners": 2, "locks": [lock("n"), lock(OURS), lock("m")]}, ("n", "m")),
        ({"maxOwners": 2, "locks": None}, ()),
        ({"maxOwners": 2, "locks": [1]}, UNREADABLE),
        ("{", UNREADABLE),
        ("[]", UNREADABLE),
    ],
)
def test_who_holds_it(there: Any, holders: tuple[str, ...]) -> None:
    api = Api(daemonset(there))
    assert kured(api).taken() == holders
    assert api.tried == (not holders)


def test_it_is_taken_renewed_and_given_back() -> None:
    api = Api(daemonset(), daemonset(name="plugin"), faster=2)
    assert kured(api).taken() == ()
    assert api.written()["nodeID"] == OURS
    assert api.written()["created"] == "2001-09-09T01:46:40Z"
    assert api.written()["TTL"] == 24 * HOUR
    assert kured(api, "other", NOW + LASTS - 1).taken() == (OURS,)  # as kured sees it
    assert kured(api, now=NOW + 60).taken() == ()
    assert api.written()["created"] == "2001-09-09T01:47:40Z"
    kured(api).give_back()
    assert api.there == [daemonset(), daemonset(name="plugin")]
    kured(api).give_back()
    assert api.there == [daemonset(), daemonset(name="plugin")]


def test_it_is_kept_while_a_drain_waits() -> None:
    api, now = Api(daemonset()), NOW
    lock = KuredLock(cast(ClusterApi, api), "r", clock=lambda: now)
    assert lock.taken() == ()
    lock.keep()
    assert api.tried == 1
    now += LASTS / 2
    lock.keep()
    assert api.written()["created"] == "2001-09-09T13:46:40Z"
    theirs = Api(daemonset({"nodeID": "n"}))
    kured(theirs).keep()
    assert theirs.tried == 0


def test_options_may_be_variables() -> None:
    """kubereboot/kured#464: KURED_CONCURRENCY is --concurrency."""
    found = daemonset(None, "--lock-annotation=site/lock")
    env = [{"name": "KURED_CONCURRENCY", "value": "2"}, {"name": "KURED_LOCK_ANNOTATION"}]
    found["spec"]["template"]["spec"]["containers"][0]["env"] = env
    api = Api(found)
    assert kured(api).taken() == ()
    assert api.written("site/lock")["maxOwners"] == 2


def test_all_locks_of_several_are_taken() -> None:
    """With fewer locks kured could still reboot a node."""
    api = Api(daemonset(None, "--concurrency=3", "--lock-annotation", "site/lock"))
    assert kured(api).taken() == ()
    written = api.written("site/lock")
    assert written["maxOwners"] == 3
    assert [each["nodeID"] for each in written["locks"]] == [OURS] * 3
    api = Api(daemonset(None, "--concurrency=99999"))
    assert kured(api).taken() == ()
    assert api.written()["maxOwners"] == 100


def test_what_is_kured() -> None:
    """A tenant can name a DaemonSet kured, and write a lock that never ends on it."""
    labels = {"app.kubernetes.io/name": "kured"}
    without, idle = daemonset(lock("n")), daemonset(lock("n"))
    del without["spec"]["template"]["spec"]["hostPID"]
    idle["status"] = {}
    assert kured(Api(daemonset(lock("n"), name="site", labels=labels))).taken() == ("n",)
    for other in (daemonset(lock("n"), name="plugin"), without, idle):
        assert kured(Api(other)).taken() == ()


@pytest.mark.parametrize(("status", "tries"), [(409, MAX_KURED_TRIES), (500, 1)])
def test_a_write_that_does_not_succeed_is_an_error(status: int, tries: int) -> None:
    api = Api(daemonset(), status=status)
    with pytest.raises(ApiError):
        kured(api).taken()
    assert api.tried == tries


@pytest.mark.parametrize("there", [lock("n"), {"maxOwners": 2, "locks": [lock("n")]}])
def test_a_lock_that_kured_took_meanwhile_stays(there: Any) -> None:
    api = Api(daemonset(), faster=1)
    merge = api.merge

    def faster(path: str, patch: Mapping[str, Any]) -> None:
        api.there = [daemonset(there)]
        merge(path, patch)

    api.merge = faster  # type: ignore[method-assign]
    assert kured(api).taken() == ("n",)
    kured(api).give_back()
    assert api.there == [daemonset(there)]


def test_a_cluster_without_kured_or_without_the_permission() -> None:
    assert kured(Api()).taken() == ()
    assert kured(Api(status=403)).taken() == ()
