"""The whole path on a real node: driver and toolkit by gpu_node, the plugin by gpu_cluster, pods.

containerd, kubelet, NVIDIA's container runtime and device plugin are real; NVML is the sandbox's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpufleet_sandbox.cluster import node_images
from gpufleet_sandbox.cluster.real_node import join
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.real_site import HOST, SECONDS, Site, joined_site


@pytest.fixture(scope="module")
def site(worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A bare host joined to a fresh cluster, then gpu_node, then gpu_cluster."""
    with joined_site(worker_id, tmp_path_factory.mktemp("site")) as found:
        yield found


@pytest.fixture(scope="module")
def provisioned(site: Site) -> Site:
    for deploy in ("gpu_node", "gpu_cluster"):
        done = site.deploy(deploy)
        assert done.returncode == 0, done.stdout + done.stderr
    return site


@pytest.fixture
def run_pod(provisioned: Site) -> Iterator[Callable[..., str]]:
    """`run_pod("a", 1)`: a pod that logs its environment and devices; deleted after the test."""

    def run(name: str, gpus: int) -> str:
        container = {
            "name": name,
            "image": node_images.PROBE,
            "imagePullPolicy": "Never",
            "command": ["/bin/sh", "-c", "env; ls /dev; exec sleep 600"],
            "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
        }
        spec = {
            "runtimeClassName": "nvidia",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        }
        body = {"metadata": {"name": name}, "spec": spec}
        provisioned.core.create_namespaced_pod("default", body)
        return name

    yield run
    provisioned.core.delete_collection_namespaced_pod("default", grace_period_seconds=1)
    assert wait_until(lambda: not provisioned.core.list_namespaced_pod("default").items, SECONDS)


def test_the_host_is_a_real_node(site: Site) -> None:
    node = site.core.read_node(HOST)
    assert node.status.node_info.kubelet_version == f"v{site.cluster.version}"
    assert node.status.node_info.container_runtime_version.startswith("containerd://1.6")
    assert site.gpus() == "None"


@pytest.mark.claim(
    "On a real kubelet and containerd with a simulated NVML, the device plugin advertises "
    "the GPUs and a pod gets one.",
    level=6,
)
def test_the_plugin_advertises_the_gpus_of_nvml(provisioned: Site) -> None:
    assert wait_until(lambda: provisioned.gpus() == "1", SECONDS)
    assert len(provisioned.host.output("nvidia-smi -L").splitlines()) == 1


def test_a_pod_gets_the_gpu_and_the_next_one_waits_for_it(
    provisioned: Site, run_pod: Callable[..., str]
) -> None:
    site = provisioned
    first = run_pod("first", 1)
    assert wait_until(lambda: site.phase(first) == "Running", SECONDS)
    assert wait_until(lambda: "nvidia0" in site.log(first), SECONDS)
    uuid = site.host.output("nvidia-smi --query-gpu=uuid --format=csv,noheader")
    assert uuid in site.host.get("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint")
    reported = site.pod_resources()
    assert all(word.encode() in reported for word in (first, "nvidia.com/gpu", uuid)), reported
    # NVIDIA's runtime replaces the GPUs with this once it has injected them
    assert "NVIDIA_VISIBLE_DEVICES=void" in site.log(first)

    def reason() -> str:
        found = site.core.read_namespaced_pod_status("second", "default").status.conditions or ()
        return "; ".join(condition.message or "" for condition in found)

    run_pod("second", 1)
    assert wait_until(lambda: "Insufficient nvidia.com/gpu" in reason(), SECONDS), reason()
    site.core.delete_namespaced_pod(first, "default", grace_period_seconds=1)
    assert wait_until(lambda: site.phase("second") == "Running", SECONDS)


@pytest.mark.extended
def test_a_pod_that_requests_no_gpu_sees_none(
    provisioned: Site, run_pod: Callable[..., str]
) -> None:
    pod = run_pod("without", 0)
    assert wait_until(lambda: provisioned.phase(pod) == "Running", SECONDS)
    assert wait_until(lambda: "urandom" in provisioned.log(pod), SECONDS)
    assert "nvidia0" not in provisioned.log(pod)
    reported = provisioned.pod_resources()
    assert (pod.encode() in reported, b"nvidia.com/gpu" in reported) == (True, False), reported


@pytest.mark.extended
def test_a_second_run_of_both_changes_nothing(provisioned: Site, tmp_path: Path) -> None:
    for deploy in ("gpu_node", "gpu_cluster"):
        done = provisioned.deploy(deploy)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "0 changed" in done.stdout + done.stderr, done.stdout + done.stderr
    assert wait_until(lambda: HOST in provisioned.cluster.ready_nodes(), SECONDS)


@pytest.mark.extended
def test_a_second_join_is_harmless(provisioned: Site) -> None:
    join(provisioned.cluster, provisioned.host)
    assert wait_until(lambda: provisioned.gpus() == "1", SECONDS)
    assert json.loads(provisioned.host.get("/etc/cni/net.d/10-pods.conflist"))["name"] == "pods"
