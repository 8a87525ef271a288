"""A node that is deleted while a run has it, and one that only seems to be."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.nodes import GONE, is_cordoned
from gpufleet.upgrade.operations import runner
from gpufleet.upgrade.states import Event, State
from tests.not_found import not_found
from tests.unit.upgrade.running import CHANGING, Steps, state
from tests.unit.upgrade.test_nodes_at_work import Api
from tests.unit.upgrade.test_taken_back import begun

pytestmark = pytest.mark.usefixtures("own_folder")

NODE = not_found("/api/v1/nodes/n")
UNKNOWN = "the server could not find the requested resource"  # client-go, of any other 404
UNEXPECTED = {"causes": [{"reason": "UnexpectedServerResponse", "message": "404 page not found"}]}


def answers(api: Api, answer: dict[str, Any]) -> None:
    """To every request, with status 404."""

    def refused(path: str, *how: Any) -> Any:
        raise ApiError(f"GET {path}", 404, answer, "c")

    api.get = api.merge = refused  # type: ignore[method-assign]
    finds(api)


def finds(api: Api) -> None:
    """It finds what it gets."""
    api.find = lambda path: ClusterApi.find(cast(ClusterApi, api), path)  # type: ignore[method-assign]


@pytest.mark.parametrize(
    "answer",
    [
        {"message": "default backend - 404"},
        {"message": "404 page not found"},  # of a proxy: every API server has nodes
        {"message": UNKNOWN},
        {"kind": "Status", "message": UNKNOWN},
        {"kind": "Status", "reason": "NotFound", "message": UNKNOWN},
        {**NODE, "details": {**NODE["details"], **UNEXPECTED}},
        {},
        not_found("/api/v1/namespaces/default/services/other"),
        not_found("/apis/example.com/v1/racks/n"),
    ],
)
def test_a_404_of_a_load_balancer_is_no_deleted_node(answer: dict[str, Any]) -> None:
    """It stays cordoned until its cluster answers."""
    run, api = begun(Steps(), *CHANGING, Event.CHANGED)
    answers(api, answer)
    runner.give_back(run, ["h"])
    assert (state(run), run.unreturned) == (State.CHANGED, {})
    del api.get, api.merge, api.find
    runner.give_back(run, ["h"])
    assert (state(run), is_cordoned(api.node or {})) == (State.DONE, False)


@pytest.mark.parametrize("at", ["before", "before the write"])
def test_of_a_deleted_node_it_is_said_that_it_is_gone(at: str) -> None:
    run, api = begun(Steps(), *CHANGING, Event.CHANGED)

    def deleted() -> None:
        answers(api, NODE)
        api.get("/api/v1/nodes/n")

    if at == "before":
        answers(api, NODE)
    else:
        api.before_write = deleted
    runner.give_back(run, ["h"])
    assert (state(run), run.progress.reasons) == (State.DONE, {"h": GONE})
    run.clusters["h"].leave_behind("h", "why")


def test_a_webhook_that_finds_no_node_deletes_none() -> None:
    """It looks the node up and refuses the write with that answer; the node is there."""
    run, api = begun(Steps(), *CHANGING, Event.CHANGED)

    def refused(path: str, *how: Any) -> Any:
        raise ApiError(f"PATCH {path}", 404, NODE, "c")

    api.merge = refused  # type: ignore[method-assign]
    finds(api)
    runner.give_back(run, ["h"])
    assert (state(run), [each.code for each in run.unreturned.values()]) == (
        State.CHANGED, ["GF278"]
    )  # fmt: skip
    with pytest.raises(ApiError):
        run.clusters["h"].leave_behind("h", "why")
