"""Hosts whose nodes users take over and keep cordoned: out of service, and no failure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.upgrade.decide import Act, Around, Do, decide
from gpufleet.upgrade.models import Plan
from gpufleet.upgrade.nodes import MARK, patched
from gpufleet.upgrade.operations import runner
from gpufleet.upgrade.operations.draining import drain
from gpufleet.upgrade.operations.preparing import _unchanged
from gpufleet.upgrade.progress import Entry, Progress, folded
from gpufleet.upgrade.states import Event, State
from tests.unit.upgrade.running import CHANGING, DRAINED, HOST, Steps, planned, running, state
from tests.unit.upgrade.test_nodes_at_work import Api, node, nodes_of, pod

pytestmark = pytest.mark.usefixtures("own_folder")

GROUP = ("h", "i", "k")
DRAINING = (Event.PREPARED, Event.DRAIN_BEGAN)
FAILED = (*CHANGING, Event.CHANGE_FAILED, Event.RESTORE_BEGAN)
KEPT = {  # events of a host before others keep its node -> whether its change failed
    (*DRAINING, Event.NOT_DRAINED): False,
    (*DRAINED, Event.NOT_REACHED): False,
    (*CHANGING, Event.NOT_REACHED): False,
    (*CHANGING, Event.CHANGED): False,
    (*FAILED, Event.RESTORED): True,
}


def of_group() -> Plan:
    """One canary, then the others."""
    others = (replace(HOST, name=name) for name in GROUP[1:])
    return planned(*others, max_unavailable=2, soak=0)


def progressed(plan: Plan, *events: Event) -> Progress:
    return folded(plan, [Entry(1.0, event.value, "h") for event in events])


@pytest.mark.parametrize(("events", "fails"), KEPT.items())
def test_a_canary_whose_node_others_keep_has_not_failed(
    events: tuple[Event, ...], fails: bool
) -> None:
    """Unless its change did: the next host of its group takes its place."""
    progress = progressed(of_group(), *events, Event.LEFT_CORDONED)
    assert (progress.states["h"], progress.out_of_service) == (State.STUCK, 1)
    assert bool(progress.lost_groups()) is fails
    for name in GROUP[1:]:
        progress.add(Entry(2.0, Event.PREPARED.value, name))
    decision = decide(progress, Around(3.0))
    assert (decision == Act(Do.DRAIN, ("i",))) is not fails


def test_a_canary_whose_roll_back_failed_has_failed() -> None:
    progress = progressed(of_group(), *FAILED, Event.RESTORE_FAILED)
    assert progress.lost_groups() == {progress.plan.by_name["h"].group}


@pytest.mark.parametrize(
    ("events", "released"),
    [(events, not fails and Event.CHANGED not in events)
     for events, fails in KEPT.items()],
)  # fmt: skip
def test_a_host_that_was_not_changed_is_left_to_other_runs(
    events: tuple[Event, ...], released: bool
) -> None:
    """Its user may have it for long: later runs would leave it out as this run's."""
    run = running(of_group(), Steps(), *events, Event.LEFT_CORDONED)
    assert ("h" in _unchanged(run)) is released


def test_a_run_goes_on_without_the_host_that_its_user_took_over() -> None:
    api = Api(node(), pod("train", "Job"))
    nodes, steps = nodes_of(api), Steps()
    run = running(of_group(), steps, *DRAINING, clusters={"h": nodes})
    nodes.run, run._posts = run.store.name, False
    drain(run, ["h"])
    api.node = patched(api.node or {}, {"metadata": {"annotations": {MARK: None}}})
    runner.carry_on(run)
    assert state(run) is State.STUCK
    assert {run.progress.states[name] for name in GROUP[1:]} == {State.DONE}
    assert (run.progress.run, run.progress.failures) == ("finished", 0)
    assert steps.asked[-1] == "release"
