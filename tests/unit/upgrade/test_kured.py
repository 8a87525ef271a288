"""kured's lock: waited for, taken, renewed, given back, one or several at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast
from unittest.mock import Mock

import pytest

from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.decide import Act, Wait
from gpufleet.upgrade.kured import (
    ANNOTATION,
    LASTS,
    held_by_others,
    is_kured,
    locking,
    unlocking,
)
from gpufleet.upgrade.operations import runner
from gpufleet.upgrade.operations.cluster import Seen
from gpufleet.upgrade.operations.kured_lock import TRIES, KuredLock
from gpufleet.upgrade.states import Event
from tests.fakes.cluster_api import patched
from tests.unit.upgrade.running import Steps, planned, running

ROOT = {"privileged": True}
SIGNAL = {"privileged": False, "capabilities": {"add": ["CAP_KILL"]}}  # kured-ds-signal.yaml
OURS, NOW, HOUR = "gpufleet-r", 1_000_000_000.0, 3_600_000_000_000  # 2001-09-09T01:46:40Z


def daemonset(lock: Any = None, *args: str, name: str = "kured") -> dict[str, Any]:
    text = lock if isinstance(lock, str) else json.dumps(lock)
    annotations = {ANNOTATION: text} if lock is not None else {}
    about = {"name": name, "namespace": "kube-system", "resourceVersion": "1"}
    pod = {"hostPID": True, "containers": [{"args": list(args), "securityContext": ROOT}]}
    return {
        "metadata": {**about, "annotations": annotations},
        "spec": {"template": {"spec": pod}},
        "status": {"currentNumberScheduled": 3},
    }


def lock(node: str, ttl: int = 0, created: str = "2001-09-09T01:46:40.5Z") -> dict[str, Any]:
    return {"nodeID": node, "metadata": {}, "created": created, "TTL": ttl}


@pytest.mark.parametrize(
    ("there", "holders"),
    [
        (None, ()),
        (lock("n"), ("n",)),
        (lock("n", HOUR, "2001-09-09T01:00:00Z"), ("n",)),
        (lock("n", HOUR, "2001-09-09T00:00:00Z"), ()),
        (lock("n", HOUR, "yesterday"), ("n",)),
        (lock(OURS), ()),
        ({"maxOwners": 2, "locks": [lock("n"), lock(OURS), lock("m")]}, ("n", "m")),
        ({"maxOwners": 2, "locks": None}, ()),
        ("{", ("a lock that cannot be read",)),
        ("[]", ("a lock that cannot be read",)),
        ({"maxOwners": 2, "locks": [1]}, ("a lock that cannot be read",)),
        (lock("n", 10**400, "2001-09-09T00:00:00Z"), ("n",)),
        (lock("n", -1, "2001-09-09T00:00:00Z"), ("n",)),
        ({"nodeID": [[1]]}, ("a lock that cannot be read",)),
    ],
)
def test_who_holds_it(there: Any, holders: tuple[str, ...]) -> None:
    assert held_by_others(daemonset(there), OURS, NOW) == holders


def test_it_is_taken_renewed_and_given_back() -> None:
    found = patched(daemonset(), locking(daemonset(), OURS, NOW) or {})
    written = json.loads(found["metadata"]["annotations"][ANNOTATION])
    assert written["nodeID"] == OURS
    assert written["created"] == "2001-09-09T01:46:40Z"
    assert written["TTL"] == 24 * HOUR
    assert held_by_others(found, "n", NOW) == (OURS,)  # as kured sees it
    assert locking(found, OURS, NOW + LASTS / 3) is None
    assert locking(found, OURS, NOW + LASTS * 2 / 3)
    free = patched(found, unlocking(found, OURS) or {})
    assert free["metadata"]["annotations"] == {}
    assert unlocking(free, OURS) is None
    assert unlocking(daemonset(lock("n")), OURS) is None


def test_all_locks_of_several_are_taken() -> None:
    """Fewer would leave a reboot to kured."""
    there = daemonset(None, "--concurrency=3", "--lock-annotation", "site/lock")
    found = patched(there, locking(there, OURS, NOW) or {})
    written = json.loads(found["metadata"]["annotations"]["site/lock"])
    assert written["maxOwners"] == 3
    assert [each["nodeID"] for each in written["locks"]] == [OURS] * 3
    assert unlocking(found, OURS)


def test_what_is_kured() -> None:
    assert is_kured(daemonset())
    assert not is_kured(daemonset(name="plugin"))
    labels = {"app.kubernetes.io/name": "kured"}
    assert is_kured(patched(daemonset(name="site"), {"metadata": {"labels": labels}}))


@pytest.mark.parametrize(
    ("status", "pod", "counts"),
    [
        (3, {"hostPID": True, "containers": [{"securityContext": SIGNAL}]}, True),
        (3, {"hostPID": True, "containers": [{"securityContext": ROOT}]}, True),
        (0, {"hostPID": True, "containers": [{"securityContext": ROOT}]}, False),
        (None, {"hostPID": True, "containers": [{"securityContext": ROOT}]}, False),
        (3, {"containers": [{"securityContext": ROOT}]}, False),
        (3, {"hostPID": True, "containers": [{}]}, False),
    ],
)
def test_a_daemonset_that_cannot_reboot_is_not_kured(
    status: int | None, pod: dict[str, Any], counts: bool
) -> None:
    """A tenant can name a DaemonSet kured, and write a lock that never ends on it."""
    there = daemonset() | {"spec": {"template": {"spec": pod}}}
    there["status"] = {"currentNumberScheduled": status}
    assert is_kured(there) is counts


def test_options_that_no_kured_can_have_are_its_defaults() -> None:
    for name in ("a b", "/x", "X_Y/z", "a/" + "b" * 64, "a" * 400, "a/b/c"):
        there = daemonset(None, f"--lock-annotation={name}")
        assert list((locking(there, OURS, NOW) or {})["metadata"]["annotations"]) == [ANNOTATION]
    written = (locking(daemonset(None, "--concurrency=99999"), OURS, NOW) or {})["metadata"]
    assert json.loads(written["annotations"][ANNOTATION])["maxOwners"] == 100


class Api:
    """DaemonSets in memory. `faster`: writes that others make first."""

    def __init__(self, *there: dict[str, Any], faster: int = 0, forbidden: bool = False) -> None:
        self.there, self.faster, self.forbidden = list(there), faster, forbidden

    def list(self, path: str) -> list[Any]:
        if self.forbidden:
            raise ApiError("GET", 403, {}, "c")
        return self.there

    def merge(self, path: str, patch: Mapping[str, Any]) -> None:
        if self.faster:
            self.faster -= 1
            raise ApiError("PATCH", 409, {}, "c")
        assert path == "/apis/apps/v1/namespaces/kube-system/daemonsets/kured"
        self.there = [patched(each, patch) if is_kured(each) else each for each in self.there]


def kured(api: Api) -> KuredLock:
    return KuredLock(cast(ClusterApi, api), "r")


def test_a_lock_of_a_cluster() -> None:
    api = Api(daemonset(name="plugin"), daemonset(), faster=2)
    assert kured(api).taken() == ()
    assert held_by_others(api.there[1], "n", NOW) == (OURS,)
    kured(api).give_back()
    assert api.there == [daemonset(name="plugin"), daemonset()]


@pytest.mark.parametrize(("status", "tries"), [(409, TRIES), (500, 1)])
def test_a_write_that_does_not_succeed_is_an_error(status: int, tries: int) -> None:
    api = Api(daemonset())
    tried: list[str] = []

    def refused(path: str, patch: Mapping[str, Any]) -> None:
        tried.append(path)
        raise ApiError("PATCH", status, {}, "c")

    api.merge = refused  # type: ignore[method-assign]
    with pytest.raises(ApiError):
        kured(api).taken()
    assert len(tried) == tries


def test_a_lock_of_others_stays() -> None:
    api = Api(daemonset(lock("n")))
    assert kured(api).taken() == ("n",)
    kured(api).give_back()
    assert api.there == [daemonset(lock("n"))]


@pytest.mark.parametrize("there", [lock("n"), {"maxOwners": 2, "locks": [lock("n")]}])
def test_a_lock_that_kured_took_meanwhile_is_not_overwritten(there: Any) -> None:
    api = Api(daemonset(), faster=1)
    merge = api.merge

    def faster(path: str, patch: Mapping[str, Any]) -> None:
        if api.faster:
            api.there = [daemonset(there)]
        merge(path, patch)

    api.merge = faster  # type: ignore[method-assign]
    assert kured(api).taken() == ("n",)
    assert api.there == [daemonset(there)]


def test_a_cluster_without_kured_or_without_the_permission() -> None:
    assert kured(Api()).taken() == ()
    assert kured(Api(forbidden=True)).taken() == ()


def test_a_run_waits_for_kured_and_gives_the_lock_back(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    api = Api(daemonset(lock("n")))
    cluster = Mock(look=Seen, kured=kured(api))
    run = running(planned(), Steps(), Event.PREPARED, clusters={"h": cluster})
    waits = runner._decided(run)
    assert isinstance(waits, Wait)
    assert waits.reason == "reboots of kured: n"
    api.there = [daemonset()]
    assert isinstance(runner._decided(run), Act)
    assert held_by_others(api.there[0], "n", NOW) != ()
    run.store.ask("pause")
    assert runner.carry_on(run).event == "paused"
    assert api.there == [daemonset()]
