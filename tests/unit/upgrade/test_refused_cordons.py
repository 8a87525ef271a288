"""Cordons that a cluster refuses, as an admission webhook does: waited for, not without end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.nodes import SCALE_DOWN, is_cordoned, mark_of, patched
from gpufleet.upgrade.operations.draining import drain
from gpufleet.upgrade.operations.run import Run
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.states import Event, State
from tests.unit.upgrade.running import Steps, planned, running, state
from tests.unit.upgrade.test_nodes_at_work import Api, node, nodes_of, pod

pytestmark = pytest.mark.usefixtures("own_folder")

DENIED = ApiError("PATCH /api/v1/nodes/n", 403, {"message": "a webhook denied the request"}, "c")
WAIT = 100


class Denying(Api):
    """It refuses cordons, as long as it `denies`."""

    denies = True

    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        if self.denies and (patch.get("spec") or {}).get("unschedulable"):
            raise DENIED
        return super().merge(path, patch)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that have passed, besides those of the test."""
    passed, clock, gmtime = [0.0], time.monotonic, time.gmtime
    monkeypatch.setattr(time, "monotonic", lambda: clock() + passed[0])
    monkeypatch.setattr(time, "gmtime", lambda *when: gmtime(*(when or (passed[0],))))
    return passed


def draining(api: Api) -> Run:
    nodes = nodes_of(api)
    begun = (Event.PREPARED, Event.DRAIN_BEGAN)
    run = running(planned(), Steps(), *begun, clusters={"h": nodes}, wait=WAIT)
    nodes.run = run.store.name
    return run


def events(run: Run) -> list[str]:
    return [entry.event for entry in Store(run.store.path).entries()][2:]


def test_a_cordon_that_is_refused_is_not_waited_for_without_end(later: list[float]) -> None:
    """Its attempts are written down once."""
    run = draining(Denying(node()))
    for _ in range(4):
        drain(run, ["h"])
        later[0] += WAIT / 4
    assert (state(run), events(run)) == (State.DRAINING, [Event.CORDON_BEGAN.value])
    drain(run, ["h"])
    assert state(run) is State.LEAVING
    assert "a webhook denied the request" in run.progress.reasons["h"]


def test_a_cordon_that_is_refused_for_a_while(later: list[float]) -> None:
    """It is that of the first attempt, and what is waited for then has the rest of the time."""
    api = Denying(node(), pod("train", "Job"))
    run = draining(api)
    drain(run, ["h"])
    later[0] += WAIT / 2
    api.denies = False
    drain(run, ["h"])
    assert is_cordoned(api.node or {})
    assert mark_of(api.node or {})["since"] == "1970-01-01T00:00:00Z"
    assert events(run) == [Event.CORDON_BEGAN.value, Event.CORDONED.value]
    later[0] += WAIT / 2
    drain(run, ["h"])
    assert state(run) is State.LEAVING


def test_what_others_set_between_two_attempts_is_written_down() -> None:
    api = Denying(node(), pod("train", "Job"))
    run = draining(api)
    drain(run, ["h"])
    api.node = patched(api.node or {}, {"metadata": {"annotations": {SCALE_DOWN: "no"}}})
    drain(run, ["h"])
    drain(run, ["h"])
    assert events(run) == [Event.CORDON_BEGAN.value] * 2
    assert run.progress.cordons["h"].mark["scale_down"] == "no"


def test_another_process_goes_on_with_a_cordon_that_was_refused() -> None:
    api = Denying(node(), pod("train", "Job"))
    run = draining(api)
    drain(run, ["h"])
    nodes = nodes_of(api)
    nodes.run = run.store.name
    api.denies = False
    again = Run(Store(run.store.path), run.plan, run.settings, run.children, print, {"h": nodes})
    drain(again, ["h"])
    assert is_cordoned(api.node or {})
    assert events(again) == [Event.CORDON_BEGAN.value, Event.CORDONED.value]
    assert again.progress.cordons["h"].seen
