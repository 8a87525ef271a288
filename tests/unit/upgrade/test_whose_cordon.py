"""Nodes that look as if the run had cordoned them: whose cordon is it?"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.nodes import (
    MARK,
    OTHER_MACHINE,
    SCALE_DOWN,
    TAINT,
    UNMANAGED,
    UNMARKED,
    is_cordoned,
    patched,
)
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.pods import Policy
from gpufleet.upgrade.states import Event
from tests.unit.upgrade.test_cordons import (
    AWAY,
    CONFLICT,
    CORDONED,
    DENIED,
    OWN,
    Webhook,
    again,
    changed,
    unusable,
)
from tests.unit.upgrade.test_nodes_at_work import Api, node, nodes_of

PRESET = {"metadata": {"labels": {UNMANAGED: "false"}, "annotations": {SCALE_DOWN: "true"}}}
UNMARK = {"metadata": {"annotations": {MARK: None}}}
THEIRS = {"status": {"nodeInfo": {"machineID": "theirs"}}}
GATEWAY = ApiError("PATCH /api/v1/nodes/n", 504, {"message": "timed out"}, "c")


def drained(api: Webhook, nodes: ClusterNodes) -> str:
    """Why the node is given up, if it is; also where an answer is lost."""
    try:
        return nodes.drain({"h": Policy()})["h"].given_up
    except ClusterProblem:
        return ""


@pytest.mark.parametrize("unmark", [False, True])
@pytest.mark.parametrize(
    ("answer", "kept"), [(DENIED, False), (CONFLICT, False), (AWAY, True), (GATEWAY, True)]
)
def test_a_user_cordons_a_node_that_had_the_values_of_a_cordon_before(
    answer: ClusterProblem, kept: bool, unmark: bool
) -> None:
    """Label and annotation prove nothing. Where the cordon of the run was refused it is the user's,
    where that is not known the node is named."""
    api = Webhook(patched(node(), PRESET))
    api.answers = [None, answer]
    nodes = nodes_of(api)
    record = nodes.record

    def recorded(event: Event, host: str, mark: str) -> None:
        record(event, host, mark)
        if answer is CONFLICT:
            api.node = patched(api.node or {}, CORDONED)

    nodes.record = recorded
    drained(api, nodes)
    api.node = patched(patched(api.node or {}, CORDONED), UNMARK if unmark else {})
    assert drained(api, nodes)
    assert nodes.give_back("h") == UNMARKED
    assert api.node == patched(patched(node(), PRESET), {**CORDONED, "spec": api.node["spec"]})
    assert (is_cordoned(api.node), nodes.kept) == (True, {"h"} if kept else set())


def killed_before(event: Event, there: dict[str, Any]) -> tuple[Webhook, ClusterNodes]:
    """The node as a process leaves it that was killed before this event was in the record, and the
    next one; CORDON_BEGAN: right after it was."""
    api = Webhook(there)
    nodes = nodes_of(api)
    record = nodes.record

    def recorded(each: Event, host: str, mark: str) -> None:
        if each is Event.CORDON_BEGAN:
            record(each, host, mark)
        if each is event:
            raise KeyboardInterrupt

    nodes.record = recorded
    with pytest.raises(KeyboardInterrupt):
        nodes.drain({"h": Policy()})
    return api, again(nodes, api)


def test_a_process_that_was_killed_before_its_cordon_lifts_no_cordon_of_a_user() -> None:
    api, nodes = killed_before(Event.CORDON_BEGAN, patched(node(), PRESET))
    api.node = patched(api.node or {}, CORDONED)
    drained(api, nodes)
    assert nodes.give_back("h") == UNMARKED
    assert (is_cordoned(api.node), nodes.kept) == (True, {"h"})
    assert api.node["metadata"] == patched(node(), PRESET)["metadata"]


@pytest.mark.parametrize("text", [None, "{}", "taken by bob"])
def test_a_node_that_a_user_takes_over_after_a_kill_stays_cordoned(text: str | None) -> None:
    """By removing or rewriting the mark, before the record has that the cluster keeps it."""
    api, nodes = killed_before(Event.CORDONED, patched(node(), OWN))
    assert is_cordoned(api.node or {})
    api.node = patched(api.node or {}, {"metadata": {"annotations": {MARK: text}}})
    assert "did not keep" in drained(api, nodes)
    assert nodes.give_back("h") == UNMARKED
    assert (is_cordoned(api.node), nodes.kept) == (True, {"h"})
    assert api.node["metadata"] == patched(node(), OWN)["metadata"]


@pytest.mark.parametrize("cordoned", [True, None])
@pytest.mark.parametrize("seen", [True, False])
def test_the_node_of_another_machine_is_not_written_to(seen: bool, cordoned: bool | None) -> None:
    """But for what is of the run by its name."""
    event = Event.DRAINED if seen else Event.CORDONED
    if seen:
        api = Webhook(patched(node(), OWN))
        nodes = nodes_of(api)
        nodes.drain({"h": Policy()})
    else:
        api, nodes = killed_before(event, patched(node(), OWN))
    theirs = patched(patched(node(), PRESET), {**THEIRS, "spec": {"unschedulable": cordoned}})
    api.node = theirs
    assert drained(api, nodes) == OTHER_MACHINE or not seen
    assert nodes.give_back("h") == OTHER_MACHINE
    assert nodes.taken_back("h") == ""
    assert (api.node, nodes.kept) == (theirs, set())
    ours = {"key": TAINT, "value": nodes.run, "effect": "NoSchedule"}
    pending = json.dumps({"pending": True, "run": nodes.run, "since": "now"})
    api.node = patched(theirs, {"spec": {"taints": [ours]}})
    api.node = patched(api.node, {"metadata": {"annotations": {MARK: pending}}})
    nodes.give_back("h")
    assert api.node["metadata"] == theirs["metadata"]
    assert not api.node["spec"]["taints"]


@pytest.mark.parametrize("uncordoned", [True, False])
@pytest.mark.parametrize("text", ["{}", "done by bob"])
def test_a_mark_that_cannot_be_read_is_as_none(text: str, uncordoned: bool) -> None:
    """Once the record has the cordon: label and annotation get their earlier values."""
    api = Webhook(patched(node(), OWN))
    nodes = nodes_of(api)
    nodes.drain({"h": Policy()})
    how = {"metadata": {"annotations": {MARK: text}}, "spec": {"unschedulable": not uncordoned}}
    api.node = patched(api.node or {}, how)
    assert nodes.give_back("h") == ("" if uncordoned else UNMARKED)
    assert api.node["metadata"] == patched(node(), OWN)["metadata"]
    assert nodes.kept == (set() if uncordoned else {"h"})


def test_a_mark_that_cannot_be_read_is_of_others_where_nothing_was_cordoned() -> None:
    api = Api(patched(node(), {"metadata": {"annotations": {MARK: "?"}}}))
    nodes_of(api).give_back("h")
    assert api.wrote == []


@pytest.mark.parametrize("make", [changed, unusable])
def test_a_mark_that_is_refused_is_removed_at_once(
    make: Callable[[str | None], str | None],
) -> None:
    """A process that is killed then would leave it to later runs, which take it for another's."""
    api = Webhook(node(), make)
    nodes = nodes_of(api)
    assert "did not keep" in drained(api, nodes)
    assert not (api.node or {})["metadata"]["annotations"]
