"""The cordon of a node by a run: its mark comes first, so that every process knows whose it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gpufleet.kube.findings import API_UNREACHABLE
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ApiError
from gpufleet.upgrade.nodes import MARK, SCALE_DOWN, UNMANAGED, is_cordoned, mark_of, patched
from gpufleet.upgrade.pods import Policy
from tests.unit.upgrade.test_nodes_at_work import RUN, Api, node, nodes_of, pod

AWAY = ClusterProblem(API_UNREACHABLE(context="c", url="u", reason="timed out"))
DENIED = ApiError("PATCH /api/v1/nodes/n", 422, {"message": "labels: Invalid value"}, "c")
OWN = {"metadata": {"labels": {UNMANAGED: "maybe"}, "annotations": {SCALE_DOWN: "no", "a": "b"}}}
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


def test_what_a_webhook_made_of_a_mark_is_removed_or_said() -> None:
    api = Webhook(node(), unusable)
    api.answers = [None, DENIED]
    nodes = nodes_of(api)
    assert "labels: Invalid value" in nodes.drain({"h": Policy()})["h"].reasons[0]
    assert "run ? of gpufleet" in nodes.drain({"h": Policy()})["h"].given_up
    assert not is_cordoned(api.node or {})


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
