"""A node that is deleted while a run has it, and one that only seems to be."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.nodes import GONE, is_cordoned
from gpufleet.upgrade.operations import runner
from gpufleet.upgrade.states import Event, State
from tests.unit.upgrade.running import CHANGING, NOT_FOUND, Steps, state
from tests.unit.upgrade.test_nodes_at_work import Api
from tests.unit.upgrade.test_taken_back import begun

pytestmark = pytest.mark.usefixtures("own_folder")


def answers(api: Api, answer: dict[str, Any]) -> None:
    """To every request, with status 404."""

    def refused(path: str, *how: Any) -> Any:
        raise ApiError(f"GET {path}", 404, answer, "c")

    api.get = api.merge = refused  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "answer",
    [
        {"message": "default backend - 404"},
        {"message": "404 page not found"},  # of a proxy: every API server has nodes
        {},
        {**NOT_FOUND, "details": {"name": "other", "kind": "services"}},
    ],
)
def test_a_404_of_a_load_balancer_is_no_deleted_node(answer: dict[str, Any]) -> None:
    """It stays cordoned until its cluster answers."""
    run, api = begun(Steps(), *CHANGING, Event.CHANGED)
    answers(api, answer)
    runner.give_back(run, ["h"])
    assert (state(run), run.unreturned) == (State.CHANGED, {})
    del api.get, api.merge
    runner.give_back(run, ["h"])
    assert (state(run), is_cordoned(api.node or {})) == (State.DONE, False)


@pytest.mark.parametrize("at", ["before", "before the write"])
def test_of_a_deleted_node_it_is_said_that_it_is_gone(at: str) -> None:
    run, api = begun(Steps(), *CHANGING, Event.CHANGED)
    answer = {**NOT_FOUND, "details": {"name": "n", "kind": "nodes"}}
    if at == "before":
        answers(api, answer)
    else:
        plain = api.get
        answers(api, answer)
        api.get = plain  # type: ignore[method-assign]
    runner.give_back(run, ["h"])
    assert (state(run), run.progress.reasons) == (State.DONE, {"h": GONE})
    run.clusters["h"].leave_behind("h", "why")
