"""A cluster in which others monitor and advertise GPUs: left as it was, and completed."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest
from kubernetes import client

from gpufleet_sandbox.cluster.snapshot import HEARTBEATS
from gpufleet_sandbox.cluster.snapshot import NODES as NODE_KEYS
from tests.cluster.stacking import STACK, Bench, choices_of

PROMETHEUS = STACK[0]
ADDED = {"node-feature-discovery", "dcgm-exporter"}
SOCKETS = "/var/lib/kubelet/device-plugins"
SERVERS = "/registry/peerserverleases/"  # of the API server itself
NODES = {"nodeSelector": {"nvidia.com/gpu.present": "true"}}


def install_prometheus(bench: Bench) -> None:
    """kube-prometheus-stack as its guide installs it: under its own name, in `monitoring`."""
    old = choices_of(PROMETHEUS, bench.cluster.version)[-2]
    archive = bench.charts / f"{PROMETHEUS}-{old}.tgz"
    spec = "prometheus.prometheusSpec"
    own = (f"{spec}.{kind}SelectorNilUsesHelmValues=true" for kind in ("serviceMonitor", "rule"))
    words = [
        *(bench.cluster.helm, "install", PROMETHEUS, archive, "-n", "monitoring"),
        *("--create-namespace", "--set", "grafana.admin.existingSecret=theirs"),
        *("--set", "prometheusOperator.admissionWebhooks.enabled=false"),
        *("--set", "prometheusOperator.tls.enabled=false"),
        *("--set", ",".join(own)),  # the real chart's default
    ]
    environment = {**os.environ, "KUBECONFIG": str(bench.cluster.kubeconfig)}
    subprocess.run(words, check=True, env=environment, capture_output=True)


def daemon(bench: Bench, name: str, container: dict[str, Any], **spec: Any) -> None:
    """Run a DaemonSet on the GPU nodes, as a cloud does."""
    labels = {"k8s-app": name}
    pod = {"containers": [{"name": "main", **container}], **NODES, **spec}
    template = {"metadata": {"labels": labels}, "spec": pod}
    body = {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    client.AppsV1Api(bench.cluster.api).create_namespaced_daemon_set("kube-system", body)


def nodes_of(bench: Bench) -> dict[str, tuple[Any, ...]]:
    """Name of each node -> its labels, annotations, spec and resources."""
    nodes = client.CoreV1Api(bench.cluster.api).list_node().items
    return {
        node.metadata.name: (
            node.metadata.labels, node.metadata.annotations, node.spec.to_dict(),
            node.status.capacity, node.status.allocatable,
        )
        for node in nodes
    }  # fmt: skip


@pytest.mark.claim(
    "Another team's Prometheus, device plugin and host engine stay as they are, byte by "
    "byte in etcd.",
    level=5,
)
def test_what_others_run_stays_as_it_is_and_the_rest_is_added(current: Bench) -> None:
    install_prometheus(current)
    sockets = {"name": "sockets", "hostPath": {"path": SOCKETS}}
    plugin = {"image": "example.invalid/nvidia-gpu-device-plugin@sha256:" + 64 * "0"}
    daemon(current, "nvidia-gpu-device-plugin-small-cos", plugin, volumes=[sockets])
    engine = {
        "image": "example.invalid/eks/observability/dcgm-exporter:3.3.7-3.5.0-ubuntu22.04",
        "command": ["nv-hostengine"],
        "ports": [{"containerPort": 5555, "hostPort": 5555}],
    }
    daemon(current, "dcgm-server", engine)
    before = current.cluster.stable_objects()
    nodes_before = nodes_of(current)

    def changed() -> list[str]:
        """Objects of before that differ now: in etcd, so with everything that they have. Nodes:
        without the conditions that they write every few minutes."""
        now = current.cluster.stable_objects()
        nodes = nodes_of(current)
        return [
            key
            for key, value in before.items()
            if not key.startswith((*HEARTBEATS, NODE_KEYS, SERVERS)) and now.get(key) != value
        ] + [name for name, node in nodes_before.items() if nodes.get(name) != node]

    auto = {"device_plugin_enabled": "auto"}
    done = current.deploy(**auto)
    assert done.returncode == 0, done.output
    assert set(done.report["releases"]) == ADDED
    assert set(current.releases()) == {PROMETHEUS, *ADDED}
    assert done.codes == {"GF871", "GF917"}, done.output
    assert changed() == []
    custom: Any = client.CustomObjectsApi(current.cluster.api)
    for plural in ("servicemonitors", "prometheusrules"):
        where = ("monitoring.coreos.com", "v1", "monitoring", plural)
        items = custom.list_namespaced_custom_object(*where)["items"]
        [ours] = [item for item in items if ("gpu" in str(item["spec"]) and "DCGM" in str(item))
                  or item["metadata"]["name"] == "dcgm-exporter"]  # fmt: skip
        assert ours["metadata"]["labels"]["release"] == PROMETHEUS
    maps = current.core.list_namespaced_config_map("monitoring", label_selector="grafana_dashboard")
    assert len([each for each in maps.items if each.metadata.name.startswith("gpufleet-")]) == 5

    assert current.deploy(**auto).report["changed"] == 0
    checks = current.verify(**auto)
    failed = {name for name, part in checks.items() if part["outcome"] == "failed"}
    assert failed == set(), checks
    relied_on = current.verify(**auto, monitoring_prometheus="existing")  # simulated: it is silent
    failed = {name for name, part in relied_on.items() if part["outcome"] == "failed"}
    assert failed == {"prometheus_answers"}, relied_on
    removed = current.deploy(deploy="remove", **auto)
    assert removed.returncode == 0, removed.output
    assert changed() == []
    assert set(current.releases()) == {PROMETHEUS}
