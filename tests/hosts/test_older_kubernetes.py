"""`sandbox cluster up --real` of an older minor, with other GPUs than the kinds of host have."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, config

from gpufleet_sandbox import Sandbox
from gpufleet_sandbox.cluster.versions import versions
from gpufleet_sandbox.kubernetes.images import GPU_PROBE
from gpufleet_sandbox.waiting import wait_until
from tests.naming import RUN

pytestmark = [pytest.mark.hosts, pytest.mark.extended]

GPUFLEET = [sys.executable, "-c", "from gpufleet.cli import main; main(prog_name='gpufleet')"]
MINOR = min(versions().kubernetes.kubeadm, key=lambda minor: int(minor.split(".")[1]))
SECONDS = 300


@pytest.fixture(scope="module")
def core(worker_id: str) -> Iterator[Any]:
    """The API of a cluster of two hosts, made by the command that people type."""
    box = Sandbox(f"{RUN}-older-{worker_id}")
    box.down()
    words = ["sandbox", "cluster", "up", "--real", "--nodes", "2", "--gpus", "t4:3,h200:2"]
    environment = {**os.environ, "GPUFLEET_SANDBOX": box.name}
    environment.pop("GPUFLEET_CHARTS", None)
    done = subprocess.run(
        [*GPUFLEET, *words, "--kubernetes", MINOR], env=environment, capture_output=True,
        text=True, check=False, timeout=3600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"export KUBECONFIG={box.folder}/kubeconfig" in done.stdout
    yield client.CoreV1Api(config.new_client_from_config(str(box.folder / "kubeconfig")))
    if os.environ.get("GPUFLEET_KEEP_SANDBOX") != "1":
        box.down()


def allocatable(core: Any) -> dict[str, str]:
    """GPUs of each node."""
    nodes = core.list_node().items
    return {each.metadata.name: each.status.allocatable.get("nvidia.com/gpu", "") for each in nodes}


def test_nodes_run_that_release_and_offer_the_gpus_asked_for(core: Any) -> None:
    wanted = {"ubuntu2404": "3", "debian12": "2"}
    assert wait_until(lambda: allocatable(core) == wanted, SECONDS), allocatable(core)
    release = f"v{versions().kubernetes.releases[MINOR]}"
    assert {node.status.node_info.kubelet_version for node in core.list_node().items} == {release}


def test_pods_get_gpus_of_the_models_asked_for(core: Any) -> None:
    wanted = {"ubuntu2404": "Tesla T4", "debian12": "NVIDIA H200"}
    assert wait_until(lambda: all(allocatable(core).values()), SECONDS), allocatable(core)
    for node in wanted:
        container = {
            "name": "gpu", "image": GPU_PROBE, "command": ["nvidia-smi", "-L"],
            "resources": {"limits": {"nvidia.com/gpu": "2"}},
        }  # fmt: skip
        spec = {
            "containers": [container], "runtimeClassName": "nvidia", "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": node},
        }  # fmt: skip
        core.create_namespaced_pod("default", {"metadata": {"name": f"on-{node}"}, "spec": spec})

    def phase(node: str) -> str:
        return str(core.read_namespaced_pod(f"on-{node}", "default").status.phase)

    for node, model in wanted.items():
        assert wait_until(lambda node=node: phase(node) == "Succeeded", SECONDS), phase(node)
        log = core.read_namespaced_pod_log(f"on-{node}", "default")
        assert log.count(model) == 2, log
