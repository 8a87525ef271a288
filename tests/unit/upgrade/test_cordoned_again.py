"""A node that its user uncordons, and cordons again later: that cordon is the user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.marks import pending_mark
from gpufleet.upgrade.nodes import MARK, SCALE_DOWN, UNCORDONED, UNMANAGED, UNMARKED, is_cordoned
from gpufleet.upgrade.nodes import patched as changed
from gpufleet.upgrade.operations import node_checks, runner
from gpufleet.upgrade.operations.changing import change, mark_left, restore
from gpufleet.upgrade.operations.draining import drain
from gpufleet.upgrade.operations.run import Run
from gpufleet.upgrade.pods import Policy
from gpufleet.upgrade.states import Event, State
from tests.unit.upgrade.running import DRAINED, Steps, planned, running, state
from tests.unit.upgrade.test_nodes_at_work import Api, node, nodes_of, pod
from tests.unit.upgrade.test_returned_once import resumed
from tests.unit.upgrade.test_taken_back import OWN, UNCORDON, begun, is_as_before, taints

pytestmark = pytest.mark.usefixtures("own_folder")

CORDON = {"spec": {"unschedulable": True}}
VALUES = {"metadata": {"labels": {UNMANAGED: "false"}, "annotations": {SCALE_DOWN: "true"}}}
UNMARK = {"metadata": {"annotations": {MARK: None}}}


def draining(*, seen: bool = True) -> tuple[Run, Api]:
    """A host whose node the run has cordoned, and waits for. `seen`: the process was not killed
    before it has written down that the cluster keeps the mark."""
    api = Api(changed(node(), OWN), pod("train", "Job"))
    nodes = nodes_of(api)
    run = running(planned(), Steps(), *DRAINED[:2], clusters={"h": nodes})
    run._posts, nodes.run = False, run.store.name
    if seen:
        drain(run, ["h"])
    else:
        killed_at(run, Event.CORDONED)
        with pytest.raises(KeyboardInterrupt):
            drain(run, ["h"])
        run = resumed(run, api)
    assert is_cordoned(api.node or {})
    return run, api


def by_user(api: Api, *how: dict[str, Any]) -> None:
    for patch in how:
        api.node = changed(api.node or {}, patch)


def killed_at(run: Run, event: Event) -> None:
    """The process is killed before it writes this event."""
    write = run.write

    def written(each: Any, *how: Any, **named: Any) -> None:
        if each is event:
            raise KeyboardInterrupt
        write(each, *how, **named)

    run.write = written  # type: ignore[method-assign]


def done_until(run: Run, step: Callable[[Run, list[str]], object], event: Event | None) -> None:
    """Do a step; the process is killed before it writes the event, if one is named."""
    if event is None:
        step(run, ["h"])
        return
    killed_at(run, event)
    with pytest.raises(KeyboardInterrupt):
        step(run, ["h"])


def is_the_users(run: Run, api: Api) -> bool:
    """Whether the node is as its user left it, and the host counts as out of service."""
    there = api.node or {}
    same = there["metadata"] == changed(node(), OWN)["metadata"]
    return same and not taints(api) and is_cordoned(there) and state(run) is State.STUCK


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("mark", ["there", "gone", "forged"])
@pytest.mark.parametrize("event", [Event.NOT_DRAINED, None])
def test_after_a_drain(event: Event | None, mark: str, seen: bool) -> None:
    """The process that saw the node uncordoned is killed: before it gives the host up, or after
    that, before anything is written to the node. The user may remove or rewrite the mark, too."""
    run, api = draining(seen=seen)
    by_user(api, UNCORDON)
    done_until(run, drain, event)
    assert event is None or state(run) is State.DRAINING
    pending = pending_mark(run.store.name, "then")
    marks = {"there": {}, "gone": UNMARK, "forged": {"metadata": {"annotations": {MARK: pending}}}}
    by_user(api, CORDON, VALUES, marks[mark])
    again = resumed(run, api)
    if event:
        drain(again, ["h"])
    assert state(again) is State.LEAVING
    runner.give_back(again, ["h"])
    assert is_the_users(again, api)
    assert UNMARKED in again.progress.reasons["h"]


@pytest.mark.parametrize("event", [Event.NOT_REACHED, None])
def test_before_a_change(event: Event | None) -> None:
    """The process is killed before it gives the host up, or after that. In the first case the next
    one does not know whether the host was changed."""
    run, api = begun(Steps(), *DRAINED)
    by_user(api, UNCORDON)
    done_until(run, change, event)
    by_user(api, CORDON)
    again = resumed(run, api)
    if event:
        change(again, ["h"])
        restore(again, ["h"])
    else:
        runner.give_back(again, ["h"])
    assert is_the_users(again, api)
    assert UNCORDONED in again.progress.reasons["h"]


@pytest.mark.parametrize("killed", [True, False])
def test_during_a_change(killed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing more is done with the host. `killed`: before the fault of the change is written."""
    monkeypatch.setattr(node_checks, "run_pod", lambda *how: "")
    steps = Steps()
    run, api = begun(steps, *DRAINED)
    steps.before = lambda: by_user(api, UNCORDON)
    done_until(run, change, Event.CHANGE_FAILED if killed else None)
    by_user(api, CORDON)
    again = resumed(run, api)
    if killed:
        change(again, ["h"])
    restore(again, ["h"])
    assert is_the_users(again, api)
    assert UNCORDONED in again.progress.reasons["h"]


def test_between_two_looks_of_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not taken for the cordon of the run."""
    monkeypatch.setattr(node_checks, "POLL", 0.0)
    monkeypatch.setattr(node_checks, "run_pod", lambda *how: "")
    steps = Steps()
    run, api = begun(steps, *DRAINED)
    steps.before = lambda: by_user(api, UNCORDON)
    find = api.find

    def found(path: str) -> dict[str, Any] | None:
        there = find(path)
        by_user(api, CORDON)
        return there

    api.find = found  # type: ignore[method-assign]
    change(run, ["h"])
    assert (state(run), run.progress.reasons["h"]) == (State.FAILED, UNCORDONED)


def test_it_is_written_down_once() -> None:
    run, api = draining()
    by_user(api, UNCORDON)
    for _ in range(2):
        assert run.clusters["h"].drain({"h": Policy()})["h"].given_up == UNCORDONED
    events = [entry.event for entry in run.store.entries()]
    assert events.count(Event.UNCORDONED.value) == 1


@pytest.mark.parametrize("at", [1, 2])
def test_between_the_looks_of_a_drain(at: int) -> None:
    """Of one that removes the clients: the run sees the node uncordoned in one of them alone."""
    steps = Steps()
    run, api = begun(steps, *DRAINED)
    api.node = changed(api.node or {}, {"spec": {"taints": None}})
    get, looks = api.get, iter(range(1, 99))

    def looked(path: str) -> dict[str, Any]:
        look = next(looks)
        by_user(api, *([UNCORDON] if look == at else []))
        there = get(path)
        by_user(api, *([CORDON] if look == at else []))
        return there

    api.get = looked  # type: ignore[method-assign]
    change(run, ["h"])
    assert (state(run), steps.asked) == (State.UNCHANGED, [])
    assert UNCORDONED in run.progress.reasons["h"]
    runner.give_back(run, ["h"])
    assert is_the_users(run, api)


def test_as_another_machine() -> None:
    """That the node stays cordoned is said there, too."""
    run, api = begun(Steps(), *DRAINED)
    run.clusters["h"].machines = {"h": "mine"}
    by_user(api, UNCORDON)
    change(run, ["h"])
    by_user(api, CORDON, {"status": {"nodeInfo": {"machineID": "theirs"}}})
    runner.give_back(run, ["h"])
    assert (state(run), is_cordoned(api.node or {})) == (State.STUCK, True)
    assert UNMARKED in run.progress.reasons["h"]


def left(run: Run) -> None:
    """The drain of the host ended: it is to be returned."""
    run.write(Event.NOT_DRAINED, "h", "upgrade_wait is over")


@pytest.mark.parametrize("status", [403, 409, 503])
def test_between_two_tries_of_a_return(status: int) -> None:
    """The run sees the node uncordoned, cannot write, and sees it cordoned the next time."""
    run, api = draining()
    left(run)
    by_user(api, UNCORDON)
    merge, refusals = api.merge, iter([True])

    def refused(path: str, patch: Any) -> dict[str, Any]:
        if next(refusals, False):
            by_user(api, CORDON)
            raise ApiError(f"PATCH {path}", status, {"message": "denied"}, "c")
        return merge(path, patch)

    api.merge = refused  # type: ignore[method-assign]
    for _ in range(2):
        if state(run) is State.LEAVING:
            runner.give_back(resumed(run, api), ["h"])
            run = resumed(run, api)
    assert is_the_users(run, api)


def test_a_process_that_is_killed_in_a_return() -> None:
    run, api = draining()
    left(run)
    by_user(api, UNCORDON)

    def killed(path: str, patch: Any) -> dict[str, Any]:
        raise KeyboardInterrupt

    merge, api.merge = api.merge, killed  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        run.clusters["h"].give_back("h")
    api.merge = merge  # type: ignore[method-assign]
    by_user(api, CORDON)
    again = resumed(run, api)
    runner.give_back(again, ["h"])
    assert is_the_users(again, api)


def stuck(run: Run) -> None:
    """Its roll-back failed: the node is to be left behind."""
    for event in (Event.CHANGE_BEGAN, Event.CHANGE_FAILED, Event.RESTORE_BEGAN):
        run.write(event, "h", "why")


def test_between_a_failed_roll_back_and_the_mark_of_its_node() -> None:
    """Whether others have the node in service is asked first: it was not Ready then."""
    run, api = begun(Steps(), *DRAINED)
    stuck(run)
    by_user(api, UNCORDON, {"status": {"conditions": []}})
    assert run.clusters["h"].taken_back("h") == ""
    by_user(api, CORDON)
    run.write(Event.RESTORE_FAILED, "h", "why")
    run.clusters["h"].leave_behind("h", "why")
    assert is_the_users(run, changed_back(api))


def test_between_two_tries_to_leave_a_node_behind() -> None:
    run, api = begun(Steps(), *DRAINED)
    stuck(run)
    run.write(Event.RESTORE_FAILED, "h", "why")
    by_user(api, UNCORDON)
    merge = api.merge

    def refused(path: str, patch: Any) -> dict[str, Any]:
        raise ApiError(f"PATCH {path}", 500, {}, "c")

    api.merge = refused  # type: ignore[method-assign]
    with pytest.raises(ApiError):
        run.clusters["h"].leave_behind("h", "why")
    api.merge = merge  # type: ignore[method-assign]
    by_user(api, CORDON)
    again = resumed(run, api)
    again.clusters["h"].leave_behind("h", "why")
    assert is_the_users(again, api)


def test_what_a_user_sets_on_a_node_that_was_given_back_stays() -> None:
    """Every process looks at the stuck nodes again."""
    run, api = draining()
    for event in (Event.DRAINED, Event.CHANGE_BEGAN, Event.CHANGE_FAILED, Event.RESTORE_BEGAN):
        run.write(event, "h")
    run.write(Event.RESTORE_FAILED, "h", "why")
    by_user(api, UNCORDON)
    run.unmarked["h"] = "why"
    mark_left(run)
    assert is_as_before(api)
    by_user(api, VALUES)  # those that the run had set, too
    there = api.node
    again = resumed(run, api)
    mark_left(again)
    assert (api.node, again.unmarked) == (there, {})


def changed_back(api: Api) -> Api:
    by_user(api, {"status": {"conditions": node()["status"]["conditions"]}})
    return api


@pytest.mark.parametrize("how", ["a webhook keeps it", "its mark goes between two looks"])
def test_a_cordon_that_stays_is_said(how: str) -> None:
    run, api = draining()
    left(run)
    if how == "a webhook keeps it":
        merge = api.merge

        def kept(path: str, patch: Any) -> dict[str, Any]:
            merge(path, patch)
            by_user(api, CORDON)
            return api.node or {}

        api.merge = kept  # type: ignore[method-assign]
    else:
        get, looks = api.get, iter([False, True])

        def looked(path: str) -> dict[str, Any]:
            if next(looks, False):
                by_user(api, UNMARK)
            return get(path)

        api.get = looked  # type: ignore[method-assign]
    runner.give_back(run, ["h"])
    assert is_cordoned(api.node or {})
    assert state(run) is State.STUCK
    assert UNMARKED in run.progress.reasons["h"]


def test_the_node_of_another_machine_gets_no_taint() -> None:
    run, api = begun(Steps(), *DRAINED)
    api.node = changed(api.node or {}, {"spec": {"taints": None}})
    run.clusters["h"].machines = {"h": "mine"}
    by_user(api, {"status": {"nodeInfo": {"machineID": "theirs"}}})
    run.clusters["h"]._taint("h", there=True)
    assert taints(api) == []
