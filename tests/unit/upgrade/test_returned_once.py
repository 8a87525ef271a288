"""What a user sets on a node after its return stays, whatever the run still does."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.cli import upgrade_run
from gpufleet.core.exit_status import ExitStatus
from gpufleet.upgrade.nodes import MARK, SCALE_DOWN, UNMANAGED, is_cordoned, patched
from gpufleet.upgrade.operations import runner
from gpufleet.upgrade.operations.changing import mark_left
from gpufleet.upgrade.operations.run import Run
from gpufleet.upgrade.pods import Policy
from gpufleet.upgrade.states import Event, State
from tests.unit.upgrade.running import DRAINED, Steps, planned, running, state
from tests.unit.upgrade.test_abort import Rebuilt, of_two, opened
from tests.unit.upgrade.test_nodes_at_work import Api, node, nodes_of
from tests.unit.upgrade.test_taken_back import OWN

pytestmark = pytest.mark.usefixtures("own_folder")
__all__ = ["opened"]  # the fixture

THEIRS = {"metadata": {"labels": {UNMANAGED: "false"}, "annotations": {SCALE_DOWN: "true"}}}
UNMARK = {"metadata": {"annotations": {MARK: None}}}


def drained(**commands: str) -> tuple[Run, Api]:
    """A host that is to be returned as it was, with its node cordoned by the run."""
    api = Api(patched(node(), OWN))
    nodes = nodes_of(api)
    run = running(planned(), Steps(), *DRAINED[:2], clusters={"h": nodes})
    run._posts, nodes.run = False, run.store.name
    run.settings["h"] = run.settings["h"].model_copy(update=commands)
    nodes.drain({"h": Policy()})
    run.write(Event.NOT_DRAINED, "h", "why")
    return run, api


def resumed(run: Run, api: Api) -> Run:
    """Another process."""
    nodes = nodes_of(api)
    nodes.run = run.store.name
    steps: Any = Steps()
    again = Run(run.store, run.plan, run.settings, steps, lambda line: None, {"h": nodes})
    again._posts = False
    return again


@pytest.mark.parametrize("cordoned", [True, None])
def test_a_second_return_takes_no_values_of_a_user_away(cordoned: bool | None) -> None:
    """upgrade_ready_command failed, and the run went on later."""
    run, api = drained(ready_command="false")
    runner.give_back(run, ["h"])
    assert (state(run), [each.code for each in run.unreturned.values()]) == (
        State.LEAVING, ["GF066"]
    )  # fmt: skip
    assert (api.node or {})["metadata"] == patched(node(), OWN)["metadata"]
    api.node = theirs = patched(
        patched(api.node or {}, THEIRS), {"spec": {"unschedulable": cordoned}}
    )
    run.settings["h"] = run.settings["h"].model_copy(update={"ready_command": "true"})
    again = resumed(run, api)
    runner.give_back(again, ["h"])
    assert (state(again), api.node) == (State.STUCK if cordoned else State.PASSED, theirs)
    assert "may be of the run" not in again.progress.reasons["h"]
    entries = [entry.event for entry in run.store.entries()]
    assert entries.count(Event.NODE_RETURNED.value) == 1


def test_a_node_that_a_user_keeps_is_not_marked_by_a_later_process() -> None:
    run, api = drained()
    api.node = patched(api.node or {}, UNMARK)
    runner.give_back(run, ["h"])
    assert (state(run), is_cordoned(api.node)) == (State.STUCK, True)
    api.node = theirs = patched(api.node, THEIRS)
    again = resumed(run, api)
    mark_left(again)
    assert (again.unmarked, api.node) == ({}, theirs)


def test_an_abort_needs_no_cluster_of_a_node_that_a_user_keeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = (*DRAINED[:2], Event.CORDONED, Event.NOT_DRAINED, Event.LEFT_CORDONED)
    run = of_two(monkeypatch, *kept, B="B")
    said: list[str] = []
    assert upgrade_run.aborted(run, said.append) is ExitStatus.FAILED
    assert run.progress().states == {"h": State.STUCK, "i": State.NOT_REACHED}
    assert Rebuilt.locked == ["B"]
    assert not any("lack their mark" in line for line in said)
