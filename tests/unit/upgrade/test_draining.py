"""Rounds of a drain over hosts of several clusters; clusters and steps are in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gpufleet.kube.findings import API_UNREACHABLE, LEASE_LOST
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.upgrade.operations.drain import Round
from gpufleet.upgrade.operations.draining import drain
from gpufleet.upgrade.pods import Policy
from gpufleet.upgrade.states import Event, State
from tests.unit.upgrade.running import HOST, Steps, planned, running

NAMES = ("h", "h2", "h3", "h4")


class Nodes:
    """A cluster that says these rounds. `silent`: it does not answer."""

    def __init__(self, silent: bool = False, **rounds: Round) -> None:
        self.silent, self.rounds = silent, rounds
        self.asked: list[list[str]] = []
        self.problem = ClusterProblem(API_UNREACHABLE(context="c", url="u", reason="timed out"))

    def drain(self, policies: Mapping[str, Policy]) -> dict[str, Round]:
        self.asked.append(list(policies))
        if self.silent:
            raise self.problem
        return {host: self.rounds[host] for host in policies}

    def post_event(self, host: str, event: Event, reason: str) -> None:
        pass


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("gpufleet.upgrade.operations.run.POLL", 0.0)


def states(**clusters: Nodes) -> dict[str, State]:
    """After one round with four hosts, of which these are nodes."""
    plan = planned(*(replace(HOST, name=name) for name in NAMES[1:]))
    run = running(plan, Steps(), clusters=clusters)
    for name in NAMES:
        run.write(Event.PREPARED, name)
    drain(run, NAMES)
    return {name: run.progress.states[name] for name in NAMES}


def test_a_cluster_is_asked_once_in_a_round() -> None:
    first = Nodes(h=Round(drained=True), h2=Round(given_up="it was uncordoned"))
    second = Nodes(h3=Round(reasons=["ns/p: it is ending"]))
    found = states(h=first, h2=first, h3=second)
    assert (first.asked, second.asked) == ([["h", "h2"]], [["h3"]])
    assert found == {
        "h": State.DRAINED, "h2": State.LEAVING, "h3": State.DRAINING, "h4": State.DRAINED,
    }  # fmt: skip


def test_a_silent_cluster_keeps_its_own_hosts_alone() -> None:
    silent = Nodes(silent=True)
    found = states(h=silent, h2=silent, h3=Nodes(h3=Round(drained=True)))
    assert found == {
        "h": State.DRAINING, "h2": State.DRAINING, "h3": State.DRAINED, "h4": State.DRAINED,
    }  # fmt: skip


def test_a_lost_lease_ends_the_process() -> None:
    lost = Nodes(silent=True)
    lost.problem = ClusterProblem(LEASE_LOST(holder="another"))
    with pytest.raises(ClusterProblem):
        states(h=lost)


def test_pods_on_their_way_keep_rounds_short(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned()
    node = Nodes(h=Round(evicted=1, reasons=["ns/p: a budget"]))
    run = running(plan, Steps(), Event.PREPARED, clusters={"h": node})
    waits: list[float] = []
    monkeypatch.setattr("gpufleet.upgrade.operations.run.POLL", 3.0)
    monkeypatch.setattr(run.stopping, "wait", waits.append)
    for _ in range(3):
        drain(run, ["h"])
    assert waits == [3.0, 3.0, 3.0]
    node.rounds["h"] = Round(reasons=["ns/p: a budget"])
    for _ in range(3):
        drain(run, ["h"])
    assert waits[3:] == [4.5, 6.75, 10.125]
