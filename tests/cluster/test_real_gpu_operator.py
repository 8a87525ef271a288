"""The real GPU Operator on a control plane with simulated nodes.

It runs outside the cluster: GPUFLEET_GPU_OPERATOR is a checkout of NVIDIA/gpu-operator after
`go build ./cmd/gpu-operator`, GPUFLEET_CHARTS a folder with the chart of that version.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from gpufleet_sandbox.cluster import Cluster
from tests.cluster.stacking import REAL_CHARTS, Bench

SOURCE = os.environ.get("GPUFLEET_GPU_OPERATOR")
OPERATOR = {"cluster_stack": "gpu-operator", "monitoring_prometheus": "none"}
# its manifests are in /opt/gpu-operator as in its image, in a separate mount namespace
RUN = (
    "mount -t tmpfs tmpfs /opt && mkdir /opt/gpu-operator && cd /opt/gpu-operator && "
    'cp -r "$0"/assets/* "$0"/manifests . && '
    'exec "$0"/gpu-operator --metrics-bind-address=0 --health-probe-bind-address=0'
)
FOUND_BY_NFD = {
    "feature.node.kubernetes.io/system-os_release.ID": "ubuntu",
    "feature.node.kubernetes.io/system-os_release.VERSION_ID": "24.04",
    "feature.node.kubernetes.io/kernel-version.full": "6.8.0-60-generic",
}


@contextmanager
def real_operator(cluster: Cluster, log: Path) -> Iterator[None]:
    environment = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "OPERATOR_NAMESPACE": "gpu-operator",
        "DRIVER_MANAGER_IMAGE": "example.invalid/k8s-driver-manager:1",
        "VALIDATOR_IMAGE": "example.invalid/gpu-operator-validator:1",
    }
    words = ["unshare", "--mount", "--map-root-user", "sh", "-c", RUN, str(SOURCE)]
    with log.open("wb") as file:
        process = subprocess.Popen(words, env=environment, stdout=file, stderr=file)
    try:
        yield
        assert process.poll() is None, log.read_text()[-2000:]
    finally:
        process.terminate()
        process.wait(30)


def test_a_run_waits_for_the_real_operator(current: Bench, tmp_path: Path) -> None:
    if not (SOURCE and REAL_CHARTS):
        pytest.skip(
            "GPUFLEET_GPU_OPERATOR and GPUFLEET_CHARTS are not set to an operator and its chart"
        )
    for node in current.core.list_node().items:
        current.core.patch_node(node.metadata.name, {"metadata": {"labels": FOUND_BY_NFD}})
    alone = current.deploy(**OPERATOR, cluster_timeout=10)
    assert "the operator has not set its state yet" in str(alone.report["findings"])
    with real_operator(current.cluster, tmp_path / "operator.log"):
        done = current.deploy(**OPERATOR)
        assert (done.returncode, done.report["changed"]) == (0, 0), done.output
        checks = current.verify(**OPERATOR)
        assert {
            name for name, part in checks.items() if part["outcome"] not in ("passed", "skipped")
        } == set()
        assert checks["operator_is_ready"]["outcome"] == "passed"
        shared = current.deploy(**OPERATOR, device_plugin_time_slicing=4)
        assert (shared.returncode, shared.report["changed"]) == (0, 1), shared.output
        apps: Any = client.AppsV1Api(current.cluster.api)
        plugin = apps.read_namespaced_daemon_set("nvidia-device-plugin-daemonset", "gpu-operator")
        assert plugin.status.updated_number_scheduled == plugin.status.number_available == 3
        assert "gpufleet-device-plugin" in str(plugin.spec.template.spec.volumes)
        again = current.deploy(**OPERATOR, device_plugin_time_slicing=4)
        assert (again.returncode, again.report["changed"]) == (0, 0), again.output
