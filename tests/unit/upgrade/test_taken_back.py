"""Nodes that others take back, or that are others' by now, while a run has them out of service."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpufleet.cli import upgrade_run
from gpufleet.core.exit_status import ExitStatus
from gpufleet.upgrade.decide import Act, Do
from gpufleet.upgrade.nodes import FAILED as FAILED_MARK
from gpufleet.upgrade.nodes import (
    MARK,
    OTHER_MACHINE,
    SCALE_DOWN,
    TAINT,
    UNMANAGED,
    UNMARKED,
    cordoning,
    is_cordoned,
    mark_of,
    patched,
    tainting,
)
from gpufleet.upgrade.operations import changing, node_checks, opening, runner
from gpufleet.upgrade.operations.changing import change, restore
from gpufleet.upgrade.operations.children import Result
from gpufleet.upgrade.operations.run import Run
from gpufleet.upgrade.pods import Policy
from gpufleet.upgrade.states import Event, State
from tests.unit.upgrade.running import CHANGING, DRAINED, Steps, planned, running, state
from tests.unit.upgrade.test_abort import SIGNALS, Rebuilt, of_two
from tests.unit.upgrade.test_cordons import DENIED
from tests.unit.upgrade.test_nodes_at_work import Api, at_work, node, nodes_of, pod
from tests.unit.upgrade.test_silent_clusters import Node

pytestmark = pytest.mark.usefixtures("own_folder")

UNCORDON = {"spec": {"unschedulable": None}}
UNMARK = {"metadata": {"annotations": {MARK: None}}}
OWN = {"metadata": {"labels": {UNMANAGED: "maybe"}, "annotations": {SCALE_DOWN: "no"}}}
FAILED = (*CHANGING, Event.CHANGE_FAILED)
KEYS = f"label {UNMANAGED}=false and annotation {SCALE_DOWN}=true of its node may be of the run"


def begun(steps: Steps, *events: Event) -> tuple[Run, Api]:
    """As `at_work`, with what the user of the node had set before."""
    run, api = at_work(steps, *events)
    name = run.store.name
    there = patched(node(), OWN)
    there = patched(there, cordoning(there, name, "now") or {})
    api.node = patched(there, tainting(there, name, there=True) or {})
    run.settings["h"] = run.settings["h"].model_copy(update={"node_timeout": 0.01})
    return run, api


def taints(api: Api) -> list[str]:
    return [each["key"] for each in (api.node or {})["spec"].get("taints") or ()]


def is_as_before(api: Api) -> bool:
    there = api.node or {}
    same = there["metadata"] == patched(node(), OWN)["metadata"]
    return same and not taints(api) and not is_cordoned(there)


def test_a_node_that_is_uncordoned_before_its_change_is_not_changed() -> None:
    """By `kubectl uncordon`, which leaves the mark."""
    steps = Steps()
    run, api = begun(steps, *DRAINED)
    api.node = patched(api.node or {}, UNCORDON)
    change(run, ["h"])
    assert (state(run), steps.asked) == (State.UNCHANGED, [])
    assert "uncordoned" in run.progress.reasons["h"]
    runner.give_back(run, ["h"])
    assert (state(run), is_as_before(api)) == (State.NOT_REACHED, True)


@pytest.mark.parametrize("result", [Result(True), Result(False, "GF303 apt failed")])
@pytest.mark.parametrize("step", ["change", "restore"])
def test_a_node_that_is_uncordoned_during_its_change_is_not_opened_unchecked(
    result: Result, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its taint stays until the host is given up; it is not cordoned again."""
    monkeypatch.setattr(node_checks, "POLL", 0.0)
    monkeypatch.setattr(node_checks, "run_pod", lambda *how: "it ran")
    steps = Steps(restore=result, change=result)
    run, api = begun(steps, *(DRAINED if step == "change" else FAILED))

    def uncordon() -> None:
        if steps.asked[-1] == step:
            api.node = patched(api.node or {}, UNCORDON)

    steps.before = uncordon
    if step == "change":
        change(run, ["h"])
        assert (state(run), taints(api)) == (State.FAILED, [TAINT])
    restore(run, ["h"])
    assert (state(run), is_as_before(api)) == (State.UNCHECKED, True)
    assert ("restore" in steps.asked) is (step == "restore")
    assert KEYS not in run.progress.reasons["h"]
    run.clusters["h"].leave_behind("h", "why")
    assert is_as_before(api)


def test_a_node_that_a_user_uncordoned_is_not_left_behind() -> None:
    """Not with the taint of the run either: it would take no pods."""
    run, api = begun(Steps(), *FAILED)
    api.node = patched(api.node or {}, UNCORDON)
    run.clusters["h"].leave_behind("h", "why")
    assert is_as_before(api)
    assert not run.clusters["h"].drain({"h": Policy()})["h"].drained
    assert is_as_before(api)


def test_a_node_that_is_left_behind_stays_so() -> None:
    """Where its user has uncordoned it, its taint keeps pods from a driver that was not checked."""
    run, api = begun(Steps(), *FAILED)
    run.clusters["h"].leave_behind("h", "why")
    api.node = there = patched(api.node or {}, UNCORDON)
    run.clusters["h"].leave_behind("h", "why")
    assert (api.node, taints(api)) == (there, [FAILED_MARK])


def test_a_node_that_another_machine_keeps_is_not_left_behind() -> None:
    run, api = begun(Steps(), *FAILED)
    api.node = there = patched(api.node or {}, {"status": {"nodeInfo": {"machineID": "theirs"}}})
    restore(run, ["h"])
    assert (state(run), run.unmarked, api.node) == (State.STUCK, {}, there)


@pytest.mark.parametrize("change_", [UNMARK, {"metadata": {"annotations": {MARK: "{}"}}}])
def test_what_may_be_of_the_run_is_named_where_the_mark_is_gone(
    change_: dict[str, Any],
) -> None:
    """Their earlier values were in the mark alone."""
    run, api = begun(Steps(), *FAILED)
    api.node = patched(patched(api.node or {}, change_), UNCORDON)
    restore(run, ["h"])
    assert state(run) is State.UNCHECKED
    assert KEYS in run.progress.reasons["h"]
    assert MARK not in ((api.node or {})["metadata"].get("annotations") or {})


@pytest.mark.parametrize(
    "events",
    [(*CHANGING, Event.CHANGED), (*DRAINED, Event.NOT_REACHED),
     (*DRAINED[:2], Event.CORDONED, Event.NOT_DRAINED)],
)  # fmt: skip
def test_a_node_that_stays_cordoned_without_its_mark_is_left_out_of_service(
    events: tuple[Event, ...],
) -> None:
    """It may be others' by now; it is no success, and takes room."""
    run, api = begun(Steps(), *events)
    api.node = patched(api.node or {}, UNMARK)
    run.progress.reasons["h"] = "why"
    runner.give_back(run, ["h"])
    assert (state(run), run.progress.out_of_service) == (State.STUCK, 1)
    assert run.progress.reasons["h"] == f"{UNMARKED}; {KEYS}; why"
    assert is_cordoned(api.node or {})


@pytest.mark.parametrize("cordoned", [True, None])
def test_what_a_user_set_on_a_node_that_was_never_the_runs_is_not_of_the_run(
    cordoned: bool | None,
) -> None:
    """The host was passed over before its cordon, in a run that was continued, too."""
    own = {"labels": {UNMANAGED: "false"}, "annotations": {SCALE_DOWN: "true"}}
    api = Api(patched(node(), {"metadata": own, "spec": {"unschedulable": cordoned}}))
    passed = (*DRAINED[:2], Event.NOT_DRAINED)
    run = running(planned(), Steps(), *passed, clusters={"h": nodes_of(api)})
    run._posts = False
    runner.give_back(run, ["h"])
    said = {"h": UNMARKED} if cordoned else {}
    assert (state(run), run.progress.reasons) == (State.PASSED, said)
    assert api.wrote == []


def test_an_abort_that_leaves_a_node_cordoned_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the mark of the run: others removed it."""
    monkeypatch.chdir(tmp_path)  # a run goes on in its own folder
    monkeypatch.setattr(SIGNALS, lambda *args: None)

    class Cordoned(Rebuilt):
        def get(self, path: str) -> dict[str, Any]:
            there: dict[str, Any] = {"spec": {"unschedulable": True}, **super().get(path)}
            return there

        find = get  # type: ignore[assignment]

        def merge(self, path: str, patch: Any) -> dict[str, Any]:
            return self.get(path)

    run = of_two(monkeypatch, *CHANGING, Event.CHANGED, A="A", B="B")
    monkeypatch.setattr(opening, "ClusterApi", Cordoned)
    assert upgrade_run.aborted(run, print) is ExitStatus.FAILED
    assert run.progress().run == "aborted"
    assert run.progress().states == {"h": State.STUCK, "i": State.STUCK}


def test_the_record_has_what_a_node_was_before_its_cordon() -> None:
    api = Api(patched(node(), OWN), pod("train", "Job"))
    run = running(planned(), Steps(), *DRAINED[:2], clusters={"h": nodes_of(api)})
    run._posts = False
    run.clusters["h"].drain({"h": Policy()})
    known = run.store.progress().cordons["h"]
    assert (known.seen, known.mark["managed"], known.mark["scale_down"]) == (True, "maybe", "no")


def test_nothing_is_said_of_a_node_that_others_left_in_service() -> None:
    run, api = begun(Steps(), *CHANGING, Event.CHANGED)
    api.node = node()
    runner.give_back(run, ["h"])
    assert (state(run), run.progress.reasons) == (State.DONE, {})


def test_what_others_set_during_the_run_stays() -> None:
    run, api = begun(Steps(), *CHANGING, Event.CHANGED)
    theirs = {"labels": {UNMANAGED: "new"}, "annotations": {SCALE_DOWN: None}}
    api.node = patched(api.node or {}, {"metadata": theirs})
    runner.give_back(run, ["h"])
    there = (api.node or {})["metadata"]
    assert (there["labels"], there["annotations"]) == ({UNMANAGED: "new"}, {})


NOT_READY = {"status": {"conditions": []}}


@pytest.mark.parametrize("how", [UNMARK, UNCORDON])
def test_a_node_that_is_not_ready_is_not_in_service(how: dict[str, Any]) -> None:
    """It was registered again, and its kubelet is down, or stopped before it was uncordoned."""
    run, api = begun(Steps(), *FAILED)
    api.node = patched(patched(patched(api.node or {}, how), UNCORDON), NOT_READY)
    restore(run, ["h"])
    assert (state(run), run.progress.out_of_service, taints(api)) == (State.STUCK, 1, [])


BEHIND = {"metadata": {"annotations": {FAILED_MARK: "why"}}}


@pytest.mark.parametrize("behind", [False, True])
def test_a_node_that_is_not_ready_is_counted_once(behind: bool) -> None:
    """Else the run waits for ever for a host that it left behind. `behind`: its node says so."""
    run, api = begun(Steps(), *FAILED)
    api.node = patched(node(), {**NOT_READY, **(BEHIND if behind else {})})
    restore(run, ["h"])
    assert state(run) is State.STUCK
    limits = replace(run.plan.limits, max_unavailable=2)
    run.progress.plan = replace(run.plan, limits=limits)
    run.progress.states["i"] = State.READY
    there = [api.node]
    api.list = lambda path, *how, **query: there if path.endswith("nodes") else []  # type: ignore[method-assign]
    assert runner._decided(run) == Act(Do.DRAIN, ("i",))


def test_a_cluster_that_does_not_say_who_has_the_node_is_waited_for() -> None:
    node = Node("taken_back")
    steps = Steps(restore=Result(False, "GF057 why"))
    run = running(planned(), steps, *FAILED, clusters={"h": node}, at=time.time())
    run.stopping.wait = lambda seconds=None: False  # type: ignore[method-assign, assignment]
    restore(run, ["h"])
    assert state(run) is State.RESTORING
    node.problem = DENIED
    restore(run, ["h"])
    assert state(run) is State.STUCK


def test_a_cluster_that_never_says_who_has_the_node_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changing, "UNREACHED", 0.0)
    steps = Steps(restore=Result(False, "GF057 why"))
    run = running(planned(), steps, *FAILED, clusters={"h": Node("taken_back")}, wait=0)
    restore(run, ["h"])
    assert state(run) is State.STUCK


COMMANDED = (*DRAINED[:2], Event.COMMAND_BEGAN, *FAILED[2:])


@pytest.mark.parametrize("ready", ["touch {mark}", "false"])
def test_the_drain_command_of_a_node_that_is_taken_back_is_taken_back(
    ready: str, tmp_path: Path
) -> None:
    """The host counts as in service, for its scheduler too."""
    run, api = begun(Steps(), *COMMANDED)
    mark = tmp_path / "mark"
    commands = {"drain_command": "true", "ready_command": ready.format(mark=mark)}
    run.settings["h"] = run.settings["h"].model_copy(update=commands)
    api.node = patched(api.node or {}, UNCORDON)
    restore(run, ["h"])
    assert (state(run), mark.exists()) == (State.UNCHECKED, ready != "false")
    said = "; upgrade_ready_command: exit status 1"
    assert (said in run.progress.reasons["h"]) is (ready == "false")


def test_a_command_that_the_end_of_a_run_ends_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run, api = begun(Steps(), *COMMANDED)
    run.settings["h"] = run.settings["h"].model_copy(update={"ready_command": "true"})
    api.node = patched(api.node or {}, UNCORDON)

    def taken(host: str) -> str:
        run.stop()
        return "taken"

    monkeypatch.setattr(run.clusters["h"], "taken_back", taken)
    restore(run, ["h"])
    assert state(run) is State.RESTORING


@pytest.mark.parametrize("keeps", [True, False])
def test_another_machine_of_the_name_is_not_the_host(keeps: bool) -> None:
    """Where it registers with the object of the node, that keeps the mark."""
    steps = Steps()
    run, api = begun(steps, *FAILED)
    there = patched(api.node or {}, UNCORDON) if keeps else node()
    api.node = patched(there, {"status": {"nodeInfo": {"machineID": "theirs"}}})
    restore(run, ["h"])
    assert (state(run), steps.asked) == (State.STUCK, [])
    assert run.progress.reasons["h"] == OTHER_MACHINE
    assert not mark_of(api.node)
    assert not taints(api)


def test_another_machine_of_the_name_is_not_checked() -> None:
    api = Api(patched(node(), cordoning(node(), "run-1", "now") or {}), pod("web"))
    api.node = patched(api.node or {}, {"status": {"nodeInfo": {"machineID": "theirs"}}})
    assert nodes_of(api).check("h", "image", 0.01) == OTHER_MACHINE
    assert nodes_of(api).clear("h", Policy()).given_up == OTHER_MACHINE
