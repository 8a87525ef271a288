"""Load tests as Jobs on real control planes. Their pods are simulated: they compute nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes import client

from gpufleet.verify.cluster import Cluster as Verified
from gpufleet.verify.inventory import Target
from gpufleet.verify.load_job import LABELS, LeftOut, Load, LoadRequest, choose, job
from gpufleet.verify.load_models import load_load_test
from gpufleet.verify.load_run import Run, running, wait
from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.pods import SECONDS
from tests.cluster.stacking import Bench

CATALOG = load_load_test()
REQUEST = LoadRequest(seconds=5, start_seconds=20)
OURS = ",".join(f"{name}={value}" for name, value in LABELS.items())
GFD = {
    "nvidia.com/cuda.runtime.major": "13",
    "nvidia.com/gpu.compute.major": "9",
    "nvidia.com/gpu.compute.minor": "0",
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
}


@pytest.fixture
def bench(simulated: Cluster, charts: Any) -> Iterator[Bench]:
    """The shared cluster, with the labels of GPU feature discovery during the test."""
    found = Bench(simulated, charts)
    label(found, GFD)
    yield found
    label(found, dict.fromkeys(GFD))


def label(bench: Bench, labels: dict[str, str | None] | dict[str, str]) -> None:
    for node in bench.core.list_node().items:
        bench.core.patch_node(node.metadata.name, {"metadata": {"labels": labels}})


@pytest.fixture
def verified(bench: Bench) -> Verified:
    kubeconfig = str(bench.cluster.kubeconfig)
    return Verified(Target("@local", ("gpu_cluster",), {"cluster_kubeconfig": kubeconfig}))


def loads(cluster: Verified) -> list[Load]:
    """The load of each node."""
    found = [choose(CATALOG, REQUEST, node, []) for node in cluster.gpu_nodes]
    assert not [each for each in found if isinstance(each, LeftOut)]
    return [each for each in found if isinstance(each, Load)]


def run(
    cluster: Verified,
    request: LoadRequest = REQUEST,
    change: Callable[[dict[str, Any]], None] = lambda _: None,
) -> list[Run]:
    """Run all loads to their end; `change` edits their manifests."""
    jobs = []
    for load in loads(cluster):
        body = job(CATALOG, load, request)
        change(body)
        jobs.append((load, body))
    progress: list[str] = []
    with running(cluster, jobs, progress.append) as runs:
        wait(cluster, runs, request, progress.append)
    assert "gpu-1" in progress[0]
    return runs


def nothing_is_left(bench: Bench) -> bool:
    batch: Any = client.BatchV1Api(bench.cluster.api)
    jobs = batch.list_namespaced_job("default", label_selector=OURS).items
    pods = bench.core.list_namespaced_pod("default", label_selector=OURS).items
    return not jobs and not pods


def test_a_job_takes_all_gpus_of_each_node_and_is_removed(bench: Bench, verified: Verified) -> None:
    runs = run(verified)
    assert [each.load.node for each in runs] == ["gpu-1", "gpu-2", "gpu-3"]
    assert {each.load.gpus for each in runs} == {8}
    assert [each.phase for each in runs] == ["Succeeded"] * 3, runs
    assert all(each.log is None and "no kubelet" in each.log_error for each in runs)
    assert wait_until(lambda: nothing_is_left(bench), SECONDS)


@pytest.mark.extended
def test_a_failed_load_is_reported_with_its_exit_status(bench: Bench, verified: Verified) -> None:
    def fail(body: dict[str, Any]) -> None:
        body["spec"]["template"]["metadata"]["annotations"] = {"sandbox.gpufleet/fail": "244"}

    runs = run(verified, change=fail)
    assert [(each.phase, each.trouble) for each in runs] == [("Failed", "exit status 244")] * 3
    assert wait_until(lambda: nothing_is_left(bench), SECONDS)


@pytest.mark.extended
def test_an_unschedulable_load_is_given_up_and_reported(bench: Bench, verified: Verified) -> None:
    def ask_for_more(body: dict[str, Any]) -> None:
        container = body["spec"]["template"]["spec"]["containers"][0]
        container["resources"]["limits"] = {"nvidia.com/gpu": "9"}

    runs = run(verified, LoadRequest(seconds=5, start_seconds=2), ask_for_more)
    assert not any(each.over for each in runs)
    assert all("Insufficient nvidia.com/gpu" in each.trouble for each in runs), runs
    assert wait_until(lambda: nothing_is_left(bench), SECONDS)


@pytest.mark.extended
def test_a_job_that_cannot_create_pods_reports_why(bench: Bench, verified: Verified) -> None:
    quota = {"metadata": {"name": "no-gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "0"}}}
    bench.core.create_namespaced_resource_quota("default", quota)

    def known() -> bool:
        found = bench.core.read_namespaced_resource_quota("no-gpus", "default")
        return bool(found.status.hard)

    try:
        assert wait_until(known, SECONDS)
        runs = run(verified, LoadRequest(seconds=5, start_seconds=3))
    finally:
        bench.core.delete_namespaced_resource_quota("no-gpus", "default")
    assert all("exceeded quota" in each.trouble for each in runs), runs


CHECKS = (
    "load_finishes",
    "load_reaches_every_gpu_node",
    "load_is_steady",
    "load_is_seen",
    "load_keeps_its_clocks",
    "load_causes_no_xid",
)


def test_on_simulated_nodes_no_check_passes(bench: Bench) -> None:
    checks = bench.verify("load", verify_load=True, verify_load_seconds=1)
    assert [checks[name]["outcome"] for name in CHECKS] == ["skipped"] * len(CHECKS), checks
    for name in CHECKS:
        assert "nothing ran: gpu-1: no kubelet gives the pod's log" in checks[name]["message"]
    assert wait_until(lambda: nothing_is_left(bench), SECONDS)


@pytest.mark.extended
def test_nothing_runs_unless_configured(bench: Bench) -> None:
    checks = bench.verify("load")
    for name in CHECKS:
        found = checks[name]
        assert (found["outcome"], found["message"]) == ("skipped", "verify_load is not set")
