"""The sandbox's control planes are what they claim: real servers, nodes that behave as asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from kubernetes import client

from gpufleet.cli import main
from gpufleet.sandbox import SandboxError
from gpufleet.sandbox.cluster import Cluster
from gpufleet.sandbox.cluster.processes import Process, end, start
from gpufleet.sandbox.waiting import wait_until

SECONDS = 30.0
Pods = Callable[[str], list[Any]]


def pod(labels: dict[str, str], **more: Any) -> dict[str, Any]:
    """The template of a pod with one container."""
    container = {"name": "main", "image": "example/none", **more.pop("container", {})}
    return {
        "metadata": {"labels": labels, **more},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }


def phases(pods: list[Any]) -> list[str]:
    return [each.status.phase for each in pods]


def test_the_version_is_the_one_asked_for(cluster: Cluster) -> None:
    answer: Any = client.VersionApi(cluster.api).get_code()
    assert answer.git_version == f"v{cluster.version}"
    assert f"{answer.major}.{answer.minor}" == cluster.version.rpartition(".")[0]


def test_nodes_are_ready_and_have_gpus(cluster: Cluster) -> None:
    core: Any = client.CoreV1Api(cluster.api)
    assert cluster.ready_nodes() == {"gpu-1", "gpu-2", "gpu-3"}
    for node in core.list_node().items:
        assert node.status.allocatable["nvidia.com/gpu"] == "8"
        assert node.metadata.labels["nvidia.com/gpu.present"] == "true"


def test_a_daemonset_has_a_pod_on_every_node(cluster: Cluster, namespace: str) -> None:
    apps: Any = client.AppsV1Api(cluster.api)
    template = pod({"app": "each"})
    template["spec"].pop("restartPolicy")
    body = {
        "metadata": {"name": "each"},
        "spec": {"selector": {"matchLabels": {"app": "each"}}, "template": template},
    }
    apps.create_namespaced_daemon_set(namespace, body)

    def ready() -> bool:
        return bool(apps.read_namespaced_daemon_set("each", namespace).status.number_ready == 3)

    assert wait_until(ready, SECONDS)


def test_a_job_completes(cluster: Cluster, namespace: str) -> None:
    batch: Any = client.BatchV1Api(cluster.api)
    template = pod({"app": "job"})
    batch.create_namespaced_job(
        namespace, {"metadata": {"name": "job"}, "spec": {"template": template}}
    )

    def complete() -> bool:
        return bool(batch.read_namespaced_job("job", namespace).status.succeeded == 1)

    assert wait_until(complete, SECONDS)


def test_gpus_are_scheduled_and_run_out(cluster: Cluster, namespace: str, pods_of: Pods) -> None:
    core: Any = client.CoreV1Api(cluster.api)
    for number, gpus in enumerate(("8", "9")):
        limits = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
        body = pod({"gpus": gpus}, name=f"pod-{number}", container=limits)
        core.create_namespaced_pod(namespace, body)
    assert wait_until(lambda: phases(pods_of("gpus=8")) == ["Running"], SECONDS)

    def reason() -> str:
        (pending,) = pods_of("gpus=9")
        return "".join(each.message or "" for each in pending.status.conditions or ())

    assert wait_until(lambda: "Insufficient nvidia.com/gpu" in reason(), SECONDS)


def test_pods_stay_pending_wait_or_fail_as_asked(
    cluster: Cluster, namespace: str, pods_of: Pods
) -> None:
    core: Any = client.CoreV1Api(cluster.api)
    failing = "pod-container-running-failed.stage.kwok.x-k8s.io"
    for body in (
        pod({"how": "held", "sandbox.gpufleet/held": "true"}, name="held"),
        pod(
            {"how": "waits"}, name="waits", annotations={"sandbox.gpufleet/waiting": "ErrImagePull"}
        ),
        pod({"how": "fails", failing: "true"}, name="fails"),
        pod({"how": "runs"}, name="runs"),
    ):
        core.create_namespaced_pod(namespace, body)
    assert wait_until(lambda: phases(pods_of("how=runs")) == ["Running"], SECONDS)
    assert wait_until(lambda: phases(pods_of("how=fails")) == ["Failed"], SECONDS)

    def waiting() -> str:
        (found,) = pods_of("how=waits")
        statuses = found.status.container_statuses or ()
        return "".join(each.state.waiting.reason for each in statuses if each.state.waiting)

    assert wait_until(lambda: waiting() == "ErrImagePull", SECONDS)
    assert phases(pods_of("how=held")) == ["Pending"]
    assert pods_of("how=held")[0].spec.node_name


def test_up_finds_what_is_up_and_refuses_another_version(cluster: Cluster) -> None:
    again = Cluster.up(cluster.name, cluster.version, progress=print)
    assert again.processes == cluster.processes
    other = "1.36" if cluster.version.startswith("1.18") else "1.18"
    with pytest.raises(SandboxError, match="GF653"):
        Cluster.up(cluster.name, other, progress=print)


def test_an_unknown_version_is_refused_before_anything_is_built() -> None:
    with pytest.raises(SandboxError, match=r"GF650.*1\.36"):
        Cluster.up("none", "1.99", progress=print)
    assert Cluster.find("none") is None


def test_down_leaves_no_process_and_no_file(cluster: Cluster) -> None:
    minor = cluster.version.rpartition(".")[0]
    name = f"{cluster.name}-down"
    runner = CliRunner()
    done = runner.invoke(
        main, ["sandbox", "cluster", "up", "--name", name, "--kubernetes", minor, "--nodes", "1"]
    )
    assert done.exit_code == 0, done.output
    done = runner.invoke(main, ["sandbox", "cluster", "status", "--name", name, "--json"])
    state = json.loads(done.output)
    assert (state["up"], state["ready_nodes"]) == (True, ["gpu-1"])
    kubeconfig = Path(state["kubeconfig"])
    assert kubeconfig.stat().st_mode & 0o077 == 0
    found = Cluster.find(name)
    assert found
    done = runner.invoke(main, ["sandbox", "cluster", "down", "--name", name])
    assert "ended 5 processes" in done.output
    assert not any(process.alive for process in found.processes)
    assert not kubeconfig.parent.exists()
    done = runner.invoke(main, ["sandbox", "cluster", "status", "--name", name])
    assert done.exit_code == 1
    assert "GF651" in done.output


def test_a_process_with_a_reused_number_is_left_alone(tmp_path: Path) -> None:
    running = start("sleep", ["sleep", "60"], tmp_path / "log", {})
    stranger = Process("sleep", running.pid, "1")
    assert end([stranger]) == 0
    assert running.alive
    assert end([running]) == 1
    assert not running.alive
