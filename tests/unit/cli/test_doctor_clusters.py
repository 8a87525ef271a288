"""`gpufleet doctor` on a cluster: what its API server and the plan of its releases say."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.cluster_api import READY
from tests.fakes.plugin_api import CRASH, LAB, PluginApi, pod, run_on_lab

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
NOT_READY = {"type": "Ready", "status": "False", "message": "PLEG is not healthy"}
Judge = Callable[..., dict[str, str]]


@pytest.fixture
def causes(monkeypatch: pytest.MonkeyPatch) -> Judge:
    """`causes(api)`: the failed checks that follow from no other one, each with its sentence."""
    run = run_on_lab(monkeypatch)

    def judge(api: PluginApi, **how: Any) -> dict[str, str]:
        (found,) = json.loads(run(api, "--json", **how).stdout)["clusters"].values()
        return {each["check"]: each["cause"] for each in found["causes"]}

    return judge


def node(
    name: str, capacity: dict[str, str], offered: dict[str, str], ready: Any = READY, **about: Any
) -> dict[str, Any]:
    status = {"conditions": [ready], "capacity": capacity, "allocatable": offered}
    return {"metadata": {"name": name, **about}, "spec": {}, "status": status}


def api_of(*nodes: Any, pods: tuple[Any, ...] = ()) -> PluginApi:
    api = PluginApi(*pods)
    api.nodes = list(nodes)
    return api


def with_releases(*actions: str) -> dict[str, Any]:
    releases = [
        {"name": f"r{number}", "action": action, "reason": "DaemonSet gpu/a is \x1b[2Jmissing"}
        for number, action in enumerate(actions)
    ]
    return {**LAB, "plan": {"steps": [], "releases": releases}}


@pytest.mark.parametrize(
    ("capacity", "offered"),
    [({GPU: "8"}, {GPU: "7"}), ({GPU: "8"}, {GPU: "0"}), ({GPU: "0", MIG: "7"}, {MIG: "6"})],
)
def test_a_node_that_offers_fewer_gpus_than_it_has_is_named(
    causes: Judge, capacity: dict[str, str], offered: dict[str, str]
) -> None:
    fine = node("n1", {GPU: "8"}, {GPU: "8"})
    found = causes(api_of(fine, node("n2", capacity, offered)))
    assert found.keys() == {"cluster.offered"}
    assert "n2 offers" in found["cluster.offered"]


@pytest.mark.parametrize(
    "fine",
    [
        node("n1", {GPU: "8"}, {GPU: "8"}),
        node("n1", {"cpu": "8", "nvidia.com/hostdev": "2"}, {"cpu": "7"}),
        node("n1", {GPU: "8"}, {GPU: "0"}, NOT_READY),
        node("n1", {GPU: "0"}, {GPU: "0"}),
        node("n1", {GPU: "0", MIG: "7"}, {GPU: "0", MIG: "7"}),
        node("n1", {GPU: "8"}, {GPU: "0"}, labels={"gpufleet/dra-driver": "true"}),
    ],
    ids=["all", "no GPU", "not Ready", "virtual machines have them", "MIG", "DRA driver"],
)
def test_other_nodes_are_fine(causes: Judge, fine: dict[str, Any]) -> None:
    assert causes(api_of(fine)) == {}


def test_the_gpus_of_a_plugin_that_starts_are_awaited(causes: Judge) -> None:
    short = node("n1", {GPU: "8"}, {GPU: "0"})
    assert causes(api_of(short, pods=(pod("p1", since=5),))) == {}
    dead = causes(api_of(short, pods=(pod("p1"),)))
    assert dead.keys() == {"cluster.plugin"}


@pytest.mark.parametrize(
    "state",
    [
        CRASH,
        {"waiting": {"reason": "RunContainerError"}},
        {"terminated": {"exitCode": 1, "reason": "Error"}},
    ],
)
def test_a_pod_of_the_exporter_that_crashes_is_named(causes: Judge, state: dict[str, Any]) -> None:
    exporter = "dcgm-exporter"
    dead = pod("e1", owner=exporter, state=state, since=3)
    found = causes(api_of(pods=(dead, pod("e2", owner=exporter, ready=True))))
    assert found.keys() == {"cluster.exporter"}
    assert "gpu/e1" in found["cluster.exporter"]


@pytest.mark.parametrize("action", ["repair", "repair-failed"])
def test_a_release_that_lacks_a_part_is_named(causes: Judge, action: str) -> None:
    found = causes(api_of(), part=with_releases("no-op", action))
    assert found.keys() == {"cluster.releases"}
    assert "r1: DaemonSet gpu/a" in found["cluster.releases"]
    assert "\x1b" not in found["cluster.releases"]


def test_a_missing_plugin_is_why_a_node_offers_none(causes: Judge) -> None:
    short = node("n1", {GPU: "8"}, {GPU: "0"})
    assert causes(api_of(short), part=with_releases("repair")).keys() == {"cluster.releases"}


@pytest.mark.parametrize("action", ["no-op", "wait", "install", "upgrade"])
def test_other_plans_of_a_release_are_no_fault(causes: Judge, action: str) -> None:
    assert causes(api_of(), part=with_releases(action)) == {}
