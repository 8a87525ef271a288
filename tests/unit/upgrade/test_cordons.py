"""The cordon of a node by a run: its mark comes first, so that every process knows whose it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gpufleet.kube.findings import API_UNREACHABLE
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.nodes import (
    MARK,
    SCALE_DOWN,
    UNMANAGED,
    UNMARKED,
    is_cordoned,
    mark_of,
    patched,
    tainting,
)
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.pods import Policy
from gpufleet.upgrade.states import Event
from tests.unit.upgrade.test_nodes_at_work import RUN, Api, node, nodes_of, pod

AWAY = ClusterProblem(API_UNREACHABLE(context="c", url="u", reason="timed out"))
CONFLICT = ApiError("PATCH /api/v1/nodes/n", 409, {"message": "modified"}, "c")
NO_MARK = "the node has no mark of the run: it was replaced, or another user removed it"
DENIED = ApiError("PATCH /api/v1/nodes/n", 422, {"message": "labels: Invalid value"}, "c")
OWN = {"metadata": {"labels": {UNMANAGED: "maybe"}, "annotations": {SCALE_DOWN: "no", "a": "b"}}}
RETURNED = {**OWN, "spec": {"taints": []}}
CORDONED = {"spec": {"unschedulable": True}}

Text = str | None


class Webhook(Api):
    """It makes something of the annotation of each write. `answers`: of writes; None where one
    succeeds. `lost`: those whose answer does not arrive."""

    def __init__(self, there: dict[str, Any], make: Callable[[Text], Text] = lambda text: text):
        super().__init__(there, pod("train", "Job"), pod("web"))
        self.make = make
        self.answers: list[ClusterProblem | None] = []
        self.lost: list[int] = []

    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        if self.answers and (problem := self.answers.pop(0)):
            raise problem
        about = dict(patch["metadata"])
        if MARK in about.get("annotations", {}):
            made = self.make(about["annotations"][MARK])
            about["annotations"] = {**about["annotations"], MARK: made}
        written = super().merge(path, {**patch, "metadata": about})
        if len(self.wrote) - 1 in self.lost:
            raise AWAY
        return written


def changed(text: Text) -> Text:
    return json.dumps({**json.loads(text), "by": "webhook"}) if text else None


def unusable(text: Text) -> Text:
    return "?" if text else None


@pytest.mark.parametrize("make", [lambda text: None, changed, unusable])
@pytest.mark.parametrize(
    "before", [node(), patched(node(), {"metadata": {"labels": {}, "annotations": {}}}),
               patched(node(), OWN)],
)  # fmt: skip
def test_a_node_whose_mark_is_refused_is_not_cordoned(
    before: dict[str, Any], make: Callable[[Text], Text]
) -> None:
    """A webhook removes or rewrites it: nothing of the run is ever on the node."""
    api = Webhook(before, make)
    seen: list[dict[str, Any] | None] = []
    api.before_write = lambda: seen.append(api.node)
    nodes = nodes_of(api)
    found = nodes.drain({"h": Policy()})["h"]
    assert "did not keep the annotation gpufleet/upgrade" in found.given_up
    nodes.give_back("h")
    there = api.node or {}
    assert not any(is_cordoned(each or {}) for each in (*seen, there))
    for part in ("labels", "annotations"):
        assert (there["metadata"].get(part) or {}) == (before["metadata"].get(part) or {})


@pytest.mark.parametrize("text", ["?", "", json.dumps({"run": RUN, "since": "then"})])
@pytest.mark.parametrize("answer", [DENIED, AWAY, CONFLICT])
def test_what_a_webhook_made_of_a_mark_is_removed(text: str, answer: ClusterProblem) -> None:
    """Once the cluster lets it; what the user of the node has set stays."""
    own = {"metadata": {"labels": {UNMANAGED: "false"}, "annotations": {SCALE_DOWN: "true"}}}
    api = Webhook(patched(node(), own), lambda written: text if written else None)
    api.answers = [None, answer, answer]
    nodes = nodes_of(api)
    assert "did not keep" in nodes.drain({"h": Policy()})["h"].given_up
    if answer is not CONFLICT:
        with pytest.raises(ClusterProblem):
            nodes.give_back("h")
    nodes.give_back("h")
    assert api.node == patched(node(), own)


def test_what_a_webhook_made_of_a_mark_is_no_cordon_to_another_process() -> None:
    own = {"metadata": {"labels": {UNMANAGED: "false"}, "annotations": {SCALE_DOWN: "true"}}}
    api = Webhook(patched(node(), own), lambda text: text and json.dumps({"run": RUN, "since": ""}))
    nodes_of(api).drain({"h": Policy()})
    nodes = nodes_of(api)
    assert "did not keep" in nodes.drain({"h": Policy()})["h"].given_up
    nodes.give_back("h")
    assert api.node == patched(node(), own)


def test_earlier_values_are_those_of_the_record() -> None:
    api = Webhook(patched(node(), OWN))
    nodes = nodes_of(api)
    nodes.drain({"h": Policy()})
    mark = json.dumps({"run": RUN, "unschedulable": False})
    api.node = patched(api.node or {}, {"metadata": {"annotations": {MARK: mark}}})
    nodes.give_back("h")
    assert api.node == patched(node(), RETURNED)


DROPS: dict[str, Callable[[Text], Text]] = {  # what a webhook does with the mark of a cordon
    "all": lambda text: text if text and "pending" in text else None,
    "values": lambda text: text and json.dumps(
        {key: value for key, value in json.loads(text).items() if key not in ("managed", "gpus")}
    ),
    "run": lambda text: text if text is None or "pending" in text else "?",
    "more": lambda text: text if text is None or "pending" in text else f"{text} ",
    "mark": lambda text: text and json.dumps({"pending": True, "run": RUN, "since": SINCE}),
}  # fmt: skip
SINCE = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("answer", [CONFLICT, AWAY, DENIED])
@pytest.mark.parametrize("drops", DROPS)
def test_a_cordon_whose_mark_is_not_kept_is_taken_back(
    drops: str, answer: ClusterProblem, lost: bool, killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record has what the node had before: in another process, too. Where nothing of the mark
    is left and this process does not know that it has cordoned the node, a user may have removed it
    to take the node over: it stays cordoned, and is named."""
    monkeypatch.setattr("time.strftime", lambda *how: SINCE)
    api = Webhook(patched(node(), OWN), DROPS[drops])
    api.lost = [1] if lost else []
    nodes = nodes_of(api)
    if lost:
        with pytest.raises(ClusterProblem):
            nodes.drain({"h": Policy()})
    else:
        assert "did not keep" in nodes.drain({"h": Policy()})["h"].given_up
    assert is_cordoned(api.node or {})
    if killed:
        nodes = again(nodes, api)
    assert "did not keep" in nodes.drain({"h": Policy()})["h"].given_up
    api.answers = [answer]
    if answer is not CONFLICT:
        with pytest.raises(ClusterProblem):
            nodes.give_back("h")
    nodes.give_back("h")
    if drops in ("all", "run") and (lost or killed):
        assert (is_cordoned(api.node), nodes.kept) == (True, {"h"})
        assert api.node["metadata"] == patched(node(), OWN)["metadata"]
    else:
        assert (api.node, nodes.kept) == (patched(node(), RETURNED), set())


def test_a_node_that_others_cordon_in_the_moment_of_the_cordon_is_theirs() -> None:
    api = Webhook(patched(node(), OWN))
    api.answers = [None, CONFLICT]
    nodes = nodes_of(api)
    record = nodes.record

    def recorded(event: Event, host: str, mark: str) -> None:
        api.node = patched(api.node or {}, CORDONED)
        record(event, host, mark)

    nodes.record = recorded
    assert nodes.drain({"h": Policy()})["h"].given_up == "another user cordoned the node"
    nodes.give_back("h")
    assert api.node == patched(patched(node(), OWN), CORDONED)
    assert nodes.kept == set()


def again(nodes: ClusterNodes, api: Api) -> ClusterNodes:
    """Another process with the record of one that was killed."""
    fresh = nodes_of(api)
    fresh.cordons = nodes.cordons
    return fresh


def test_a_cordon_that_cannot_be_taken_back_is_out_of_service() -> None:
    """Its label is not as the run has set it: it may be another user's."""
    api = Webhook(patched(node(), OWN), DROPS["all"])
    nodes = nodes_of(api)
    nodes.drain({"h": Policy()})
    api.node = patched(api.node or {}, {"metadata": {"labels": {UNMANAGED: "new"}}})
    assert UNMARKED in nodes.give_back("h")
    assert (is_cordoned(api.node), nodes.kept) == (True, {"h"})


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("uncordoned", [False, True])
def test_a_node_whose_mark_goes_after_its_cordon_is_given_up(
    uncordoned: bool, killed: bool
) -> None:
    """It stays cordoned where others left it so; it is never cordoned again."""
    api = Webhook(patched(node(), OWN))
    nodes = nodes_of(api)
    assert not nodes.drain({"h": Policy()})["h"].given_up
    theirs = {"metadata": {"annotations": {MARK: None}}}
    api.node = patched(api.node or {}, {**theirs, "spec": {"unschedulable": not uncordoned}})
    nodes = again(nodes, api) if killed else nodes
    assert nodes.drain({"h": Policy()})["h"].given_up == NO_MARK
    nodes.give_back("h")
    assert is_cordoned(api.node) is not uncordoned
    assert api.node["metadata"] == patched(node(), OWN)["metadata"]
    assert nodes.kept == (set() if uncordoned else {"h"})


def test_a_mark_that_goes_with_the_answer_of_the_cordon_is_not_another_users() -> None:
    api = Webhook(node())
    seen = api.merge

    def merge(path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        written = seen(path, patch)
        if is_cordoned(written):
            api.node = patched(written, {"metadata": {"annotations": {MARK: None}}})
        return written

    api.merge = merge  # type: ignore[method-assign]
    nodes = nodes_of(api)
    nodes.drain({"h": Policy()})
    assert nodes.drain({"h": Policy()})["h"].given_up == NO_MARK


def test_a_forged_mark_does_not_keep_a_node_cordoned() -> None:
    """As if it were not cordoned yet."""
    api = Webhook(patched(node(), OWN))
    nodes = nodes_of(api)
    nodes.drain({"h": Policy()})
    api.node = patched(api.node or {}, tainting(api.node or {}, RUN, there=True) or {})
    forged = json.dumps({"pending": True, "run": RUN, "since": "now"})
    api.node = patched(api.node, {"metadata": {"annotations": {MARK: forged}}})
    nodes.give_back("h")
    assert (api.node, nodes.kept) == (patched(node(), RETURNED), set())


def test_a_mark_that_goes_before_the_cordon_is_refused() -> None:
    """Another controller removes it, or the webhook acts on cordoned nodes alone."""
    api = Webhook(node())
    reads = api.get

    def get(path: str) -> dict[str, Any]:
        if api.node and mark_of(api.node):
            api.node = node()
        return reads(path)

    api.get = get  # type: ignore[method-assign]
    assert "did not keep" in nodes_of(api).drain({"h": Policy()})["h"].given_up
    assert not is_cordoned(api.node or {})
    api = Webhook(node(), lambda text: text if text and "pending" in text else None)
    assert "did not keep" in nodes_of(api).drain({"h": Policy()})["h"].given_up


def marked() -> Webhook:
    """The node as a process leaves it that was killed between its mark and its cordon."""
    api = Webhook(patched(node(), OWN))
    api.answers = [None, AWAY]
    with pytest.raises(ClusterProblem):
        nodes_of(api).drain({"h": Policy()})
    assert mark_of(api.node or {})["run"] == RUN
    assert not is_cordoned(api.node or {})
    return api


def test_a_mark_without_its_cordon_is_gone_on_with() -> None:
    """By another process; the earlier values are those of the moment of the cordon."""
    api = marked()
    api.node = patched(api.node or {}, {"metadata": {"labels": {UNMANAGED: "new"}}})
    nodes = nodes_of(api)
    assert not nodes.drain({"h": Policy()})["h"].given_up
    assert is_cordoned(api.node)
    assert mark_of(api.node)["managed"] == "new"
    nodes.give_back("h")
    assert api.node["metadata"]["labels"] == {UNMANAGED: "new"}
    assert api.node["metadata"]["annotations"] == {SCALE_DOWN: "no", "a": "b"}
    assert not is_cordoned(api.node)


@pytest.mark.parametrize("others", [{}, CORDONED])
def test_a_mark_without_its_cordon_is_removed_alone(others: dict[str, Any]) -> None:
    """What others did with the node meanwhile stays."""
    api = marked()
    api.node = patched(api.node or {}, others)
    nodes = nodes_of(api)
    if others:
        assert nodes.drain({"h": Policy()})["h"].given_up == "another user cordoned the node"
    nodes.give_back("h")
    assert api.node == patched(patched(node(), OWN), others)


@pytest.mark.parametrize("write", [0, 1])
def test_a_write_whose_answer_is_lost_is_no_end(write: int) -> None:
    api = Webhook(patched(node(), OWN))
    api.lost = [write]
    nodes = nodes_of(api)
    with pytest.raises(ClusterProblem):
        nodes.drain({"h": Policy()})
    assert not nodes.drain({"h": Policy()})["h"].given_up
    assert is_cordoned(api.node or {})
    nodes.give_back("h")
    there = api.node or {}
    assert (there["metadata"], is_cordoned(there)) == (patched(node(), OWN)["metadata"], False)


def test_a_mark_of_another_run_keeps_a_node_from_this_one() -> None:
    api = marked()
    for each in (nodes_of(api), nodes_of(api)):
        each.run = "run-2"
        assert "run run-1 of gpufleet" in each.drain({"h": Policy()})["h"].given_up
        each.give_back("h")
    assert mark_of(api.node or {})["run"] == RUN
