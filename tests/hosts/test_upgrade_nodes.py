"""The driver of nodes is changed under work: real kubelets, pods, budgets, Jobs and evictions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from driver_state import loaded
from upgrade_site import (
    CONTROL,
    NEW,
    OLD,
    OTHER,
    SECOND,
    SECONDS,
    Nodes,
    clear,
    older_nodes,
    on,
    serve,
    template,
    watched,
)

from gpufleet_sandbox import Sandbox
from gpufleet_sandbox.waiting import wait_until

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.extended,
    pytest.mark.claim(
        "Nodes with real kubelets change under a Job, a Deployment and a budget. A failed "
        "canary goes back; killed runs go on.",
        level=3,
    ),
]

KILLS, SEED = 5, 20261126


@pytest.fixture(scope="module")
def cluster(
    worker_id: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Sandbox, Path]]:
    with older_nodes(f"upgrade-{worker_id}", tmp_path_factory.mktemp("upgrade")) as found:
        yield found


@pytest.fixture
def nodes(cluster: tuple[Sandbox, Path], tmp_path: Path) -> Iterator[Nodes]:
    box, charts = cluster
    found = Nodes([], tmp_path, box=box, charts=charts)
    yield found
    clear(found)


def test_nodes_change_under_work_and_go_back(nodes: Nodes) -> None:
    """A Job is waited for, a budget is kept, a node that a user cordoned is left alone."""
    nodes.core.patch_node(CONTROL, {"spec": {"unschedulable": True}})
    serve(nodes, 1, 0, nodeSelector=on(SECOND))
    job = {"backoffLimit": 0, "template": template(
        "train", "n=0; while [ $n -lt 40 ]; do nvidia-smi -L || exit 1; n=$((n+1)); sleep 1; done",
        restartPolicy="Never", nodeSelector=on(OTHER),
    )}  # fmt: skip
    nodes.batch.create_namespaced_job("default", {"metadata": {"name": "train"}, "spec": job})
    assert wait_until(lambda: nodes.ready("train") == 1, SECONDS)
    try:
        done = nodes.run("start", "--to", NEW, "--yes")
        assert done.returncode == 0, done.stdout
        assert f"left out: {CONTROL}: another user cordoned the node" in done.stdout
        assert nodes.states() == {SECOND: "done", OTHER: "done"}
        status = nodes.batch.read_namespaced_job("train", "default").status
        assert (status.succeeded, status.failed) == (1, None)
        assert wait_until(lambda: nodes.ready("serve") == 1, SECONDS)
        for name in (SECOND, OTHER):
            nodes.assert_in_service(name, NEW)
        assert nodes.core.read_node(CONTROL).spec.unschedulable
        assert loaded(nodes.host(CONTROL)) == OLD
    finally:
        nodes.core.patch_node(CONTROL, {"spec": {"unschedulable": None}})
    back = nodes.run("rollback", "--yes")
    assert back.returncode == 0, back.stdout
    for name in (SECOND, OTHER):
        nodes.assert_in_service(name, OLD)


def test_a_canary_that_fails_is_rolled_back_under_a_budget(nodes: Nodes) -> None:
    serve(nodes, 2, 1)
    lowest = [2]
    end = watched(nodes, lowest)
    canary = nodes.host(SECOND)
    canary.set_fault("dkms-failure", True)
    try:
        waiting = nodes.at(SECOND, "restoring", lambda: canary.set_fault("dkms-failure", False))
        done = nodes.run("start", "--to", NEW, "--yes", "--limit", SECOND, "--limit", CONTROL)
        waiting.join()
    finally:
        canary.set_fault("dkms-failure", False)
        end()
    assert done.returncode == 1, done.stdout
    assert nodes.states() == {SECOND: "reverted", CONTROL: "passed"}
    assert lowest == [1] or lowest == [2]
    for name in (SECOND, CONTROL):
        nodes.assert_in_service(name, OLD)


def test_a_budget_that_cannot_be_met_is_named(nodes: Nodes) -> None:
    serve(nodes, 1, 1, nodeSelector=on(SECOND))
    nodes.data = {"upgrade_wait": 15}
    done = nodes.run("start", "--to", NEW, "--yes", "--limit", SECOND)
    assert done.returncode == 1
    assert nodes.states() == {SECOND: "passed"}
    assert "disruption budget serve needs 1 healthy pods" in nodes.reason(SECOND)
    assert nodes.ready("serve") == 1
    nodes.assert_in_service(SECOND, OLD)


def test_a_killed_run_goes_on(nodes: Nodes) -> None:
    """SIGKILL of the controller at random moments: no node stays cordoned, no job is ended."""
    moments = random.Random(SEED)
    options = ("--to", NEW, "--yes", "--limit", SECOND)
    assert nodes.killed(moments.uniform(1, 20), "start", *options, events=1)
    for _ in range(KILLS):
        if not nodes.killed(moments.uniform(3, 30), "start", *options):
            break
    done = nodes.run("start", *options)
    assert done.returncode == 0, done.stdout
    state = json.loads(nodes.host(SECOND).output("cat /var/lib/gpufleet/upgrade.json"))
    assert (state["phase"], state["attempts"]) == ("done", 1)
    nodes.assert_in_service(SECOND, NEW)
    assert nodes.run("rollback", "--yes").returncode == 0
    nodes.assert_in_service(SECOND, OLD)


def test_a_node_that_cannot_be_rolled_back_is_left_with_the_reason(nodes: Nodes) -> None:
    canary = nodes.host(SECOND)
    damage = "echo x >>$(ls -d /var/lib/gpufleet/upgrade/packages/*utils* | head -n 1)"
    canary.set_fault("dkms-failure", True)
    try:
        waiting = nodes.at(SECOND, "restoring", lambda: canary.run(damage))
        done = nodes.run("start", "--to", NEW, "--yes", "--limit", SECOND)
        waiting.join()
    finally:
        canary.set_fault("dkms-failure", False)
    assert done.returncode == 1
    assert nodes.states() == {SECOND: "stuck"}
    node = nodes.core.read_node(SECOND)
    assert node.spec.unschedulable
    assert "GF055" in node.metadata.annotations["gpufleet/upgrade-failed"]
    assert "gpufleet/upgrade" in [taint.key for taint in node.spec.taints]
