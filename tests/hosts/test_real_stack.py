"""The GPU stack on a kubeadm cluster: operator, Prometheus, Alertmanager, adapter, detector run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from cluster_site import PHASES
from kubernetes import client, config

from gpufleet_sandbox import Host, Sandbox
from gpufleet_sandbox.kubernetes.cluster import inventory, placed, prepare
from gpufleet_sandbox.kubernetes.images import PROBE
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.running_charts import write_running_charts
from tests.naming import RUN

pytestmark = [pytest.mark.hosts, pytest.mark.extended]

HOSTS = ("ubuntu2404", "debian12")  # the first controls
GPUS = "h100:4,a100:2"
GPUFLEET = [sys.executable, "-c", "from gpufleet.cli import main; main(prog_name='gpufleet')"]
SECONDS = 600
MOST = 4  # replicas
NAMESPACE = "monitoring"
PROMETHEUS = "kube-prometheus-stack-prometheus:9090"
OURS = """\
import runpy

_found = runpy.run_path({inventory!r})
gpu_nodes, control_plane = _found["gpu_nodes"], _found["control_plane"]
gpu_cluster = (_found["gpu_cluster"][0], {{**_found["gpu_cluster"][1], **{data!r}}})
"""


@dataclass(slots=True)
class Receiver:
    """An HTTP server for Alertmanager's notifications, which it keeps with the time."""

    address: str
    got: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    server: ThreadingHTTPServer | None = None

    def start(self) -> str:
        """Its URL."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((time.time(), json.loads(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer((self.address, 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://{self.address}:{self.server.server_address[1]}/"

    def stop(self) -> None:
        if self.server:
            self.server.shutdown()
            self.server.server_close()

    def alerts(self, name: str, status: str) -> list[dict[str, Any]]:
        """The alerts received so far with a name and status."""
        return [
            alert
            for _, message in list(self.got)
            for alert in message["alerts"]
            if (alert["labels"]["alertname"], alert["status"]) == (name, status)
        ]


@dataclass(frozen=True, slots=True)
class Site:
    """The hosts, their inventory, and a folder."""

    box: Sandbox
    environment: dict[str, str]
    folder: Path

    def host(self, name: str) -> Host:
        return self.box.host(name)

    def create(self, **data: Any) -> dict[str, Any]:
        """`gpufleet cluster create`; its JSON report."""
        report, ours = self.folder / "create.json", self.folder / "inventory.py"
        ours.write_text(OURS.format(inventory=str(inventory()), data=data))
        words = [*GPUFLEET, "cluster", "create", str(ours), "--yes", "--json", str(report)]
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, check=False, timeout=1800
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(report.read_text())
        return found

    @property
    def api(self) -> Any:
        return config.new_client_from_config(str(self.box.folder / "kubeconfig"))

    @property
    def core(self) -> Any:
        return client.CoreV1Api(self.api)

    def query(self, text: str) -> list[dict[str, Any]]:
        """Series of Prometheus, through the API server; [] while it does not answer."""
        path = f"/api/v1/namespaces/{NAMESPACE}/services/{PROMETHEUS}/proxy/api/v1/query"
        api = self.api
        query, keys = [("query", text)], ["BearerToken"]
        words = api.param_serialize("GET", path, query_params=query, auth_settings=keys)
        answer = api.call_api(*words)
        if answer.status != 200:
            return []
        found: list[dict[str, Any]] = json.loads(answer.read())["data"]["result"]
        return found

    def note(self, text: str) -> None:
        """Print a time, and append it to the file that GPUFLEET_TIMES names."""
        print(text)
        if path := os.environ.get("GPUFLEET_TIMES"):
            with open(path, "a") as file:
                file.write(f"{text}\n")


@pytest.fixture(scope="module")
def site(worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    name = f"{RUN}-stack-{worker_id}"
    box = Sandbox(name, progress=print, images="imitation")
    box.down()
    folder = tmp_path_factory.mktemp("stack")
    environment = {
        **os.environ, "GPUFLEET_SANDBOX": name, "GPUFLEET_CHARTS": f"{folder}/charts",
        "GPUFLEET_MONITORING": "1",
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUFLEET_MONITORING", "1")
        prepare("1.36", print)
    write_running_charts(folder / "charts")
    for kind in HOSTS:
        box.up([kind], gpus=placed(len(HOSTS), GPUS))
    yield Site(box, environment, folder)
    if os.environ.get("GPUFLEET_KEEP_SANDBOX") != "1":
        box.down()


@pytest.fixture(scope="module")
def created(site: Site) -> dict[str, Any]:
    began = time.monotonic()
    found = site.create()
    site.note(f"cluster with its stack, verified: {time.monotonic() - began:.0f} s")
    return found


@pytest.fixture(scope="module")
def receiver(site: Site, created: dict[str, Any]) -> Iterator[Receiver]:
    """A receiver on this machine's address in the sandbox, which Alertmanager knows."""
    found = Receiver(site.host(HOSTS[0]).gateway)
    text = json.dumps([{"name": "default", "webhook_configs": [{"url": found.start()}]}])
    body = {"metadata": {"name": "receivers"}, "stringData": {"receivers.yaml": text}}
    site.core.create_namespaced_secret(NAMESPACE, body)
    try:
        site.create(monitoring_alert_receivers="receivers")
        yield found
    finally:
        found.stop()


@pytest.mark.claim(
    "The GPU stack runs on a kubeadm cluster, with operator, Prometheus, adapter, "
    "detector and plugin built from source.",
    level=3,
)
def test_every_pod_of_the_stack_runs(site: Site, created: dict[str, Any]) -> None:
    phases = {each["name"]: each["result"] for each in created["phases"]}
    assert phases == dict.fromkeys(PHASES, "passed")
    pods = site.core.list_pod_for_all_namespaces().items
    waiting = [pod.metadata.name for pod in pods if not is_ready(pod)]
    assert not waiting
    parts = (
        "operator", "prometheus-kube-prometheus-stack-prometheus-0", "alertmanager-kube",
        "node-exporter", "prometheus-adapter", "node-problem-detector", "dcgm-exporter",
        "nvidia-device-plugin", "kube-state-metrics",
    )  # fmt: skip
    names = " ".join(pod.metadata.name for pod in pods)
    assert [part for part in parts if part not in names] == []
    nodes = {node.metadata.name: node.status.allocatable for node in site.core.list_node().items}
    assert {name: found["nvidia.com/gpu"] for name, found in nodes.items()} == {
        "ubuntu2404": "4", "debian12": "2",
    }  # fmt: skip


def test_the_state_of_nodes_and_daemonsets_is_scraped(site: Site, created: dict[str, Any]) -> None:
    """The series of the alerts about missing GPUs have the labels that the alerts select."""
    labels = 'kube_node_labels{label_nvidia_com_gpu_present="true"}'
    capacity = 'kube_node_status_capacity{resource="nvidia_com_gpu"}'
    wanted = 'kube_daemonset_status_desired_number_scheduled{daemonset="nvidia-device-plugin"}'

    def seen() -> dict[str, str]:
        found = site.query(f"{capacity} and on (node) {labels}")
        return {each["metric"]["node"]: each["value"][1] for each in found}

    assert wait_until(lambda: len(seen()) == len(HOSTS), SECONDS), seen()
    assert seen() == {"ubuntu2404": "4", "debian12": "2"}
    assert [each["value"][1] for each in site.query(wanted)] == ["2"]


@pytest.mark.claim(
    "An XID reaches a receiver through exporter, Prometheus, rule and Alertmanager, with "
    "node and GPU.",
    level=3,
)
def test_an_xid_reaches_the_receiver(site: Site, receiver: Receiver) -> None:
    """Exporter, ServiceMonitor, operator, Prometheus, rule, Alertmanager, webhook."""
    host = site.host("debian12")
    began = time.time()
    with host.fault("gpu-xid"):
        assert wait_until(lambda: receiver.alerts("GpuFellOffBus", "firing"), SECONDS)
        site.note(f"XID to receiver: {receiver.got[-1][0] - began:.0f} s")
    [alert] = receiver.alerts("GpuFellOffBus", "firing")[:1]
    assert alert["labels"]["node"] == "debian12"
    assert alert["labels"]["modelName"] == "NVIDIA A100-SXM4-80GB"
    assert "debian12" in alert["annotations"]["summary"]


@pytest.mark.claim(
    "An XID in the kernel's log becomes a condition of the node, and goes with it.",
    level=3,
)
def test_an_xid_becomes_a_condition_of_the_node(site: Site, created: dict[str, Any]) -> None:
    def status() -> str:
        found = site.core.read_node("ubuntu2404").status.conditions
        return next((each.status for each in found if each.type == "GpuFellOffBus"), "")

    host = site.host("ubuntu2404")
    host.set_fault("gpu-xid", False)  # the log of a driver that was loaded and is well
    assert wait_until(lambda: status() == "False", SECONDS), status()
    began = time.monotonic()
    with host.fault("gpu-xid"):
        assert wait_until(lambda: status() == "True", SECONDS), status()
        site.note(f"XID to node condition: {time.monotonic() - began:.0f} s")
    began = time.monotonic()
    assert wait_until(lambda: status() == "False", SECONDS), status()
    site.note(f"node condition back: {time.monotonic() - began:.0f} s")


@pytest.mark.claim(
    "An autoscaler follows the load of GPUs, and kubelets run its pods.",
    level=3,
)
def test_a_deployment_follows_the_load_of_its_gpus(site: Site, created: dict[str, Any]) -> None:
    apps: Any = client.AppsV1Api(site.api)
    scaling: Any = client.AutoscalingV2Api(site.api)
    apps.create_namespaced_deployment("default", deployment())
    scaling.create_namespaced_horizontal_pod_autoscaler("default", autoscaler())

    def running() -> int:
        pods = site.core.list_namespaced_pod("default", label_selector="app=gpu").items
        return sum(is_ready(pod) for pod in pods)

    assert wait_until(lambda: running() == 1, SECONDS)
    for name in HOSTS:
        site.host(name).set_fault("gpu-load", True)
    follow(site, "up", running, range(2, MOST + 1))
    for name in HOSTS:
        site.host(name).set_fault("gpu-load", False)
    follow(site, "down", running, [1])


def follow(site: Site, way: str, running: Callable[[], int], numbers: Any) -> None:
    """Wait for at least, or at most, these numbers of pods one after the other; note the times."""
    began = time.monotonic()
    for number in numbers:

        def reached(number: int = number) -> bool:
            return running() >= number if way == "up" else running() <= number

        assert wait_until(reached, SECONDS), running()
        site.note(f"{way} to {number} pods: {time.monotonic() - began:.0f} s")


def deployment() -> dict[str, Any]:
    container = {
        "name": "gpu", "image": PROBE, "command": ["/bin/sh", "-c", "exec sleep 100000"],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }  # fmt: skip
    spec = {
        "containers": [container], "runtimeClassName": "nvidia", "terminationGracePeriodSeconds": 1
    }  # fmt: skip
    labels = {"app": "gpu"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "metadata": {"name": "gpu"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def autoscaler() -> dict[str, Any]:
    """Without the five minutes that it usually waits before it takes pods away."""
    metric = {
        "metric": {"name": "duty_cycle_current"},
        "target": {"type": "AverageValue", "averageValue": "60"},
    }
    return {
        "metadata": {"name": "gpu"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "gpu"},
            "minReplicas": 1,
            "maxReplicas": MOST,
            "metrics": [{"type": "Pods", "pods": metric}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }


def is_ready(pod: Any) -> bool:
    """Whether a pod is Ready, or has ended well."""
    conditions = pod.status.conditions or ()
    ready = any(each.type == "Ready" and each.status == "True" for each in conditions)
    return ready or pod.status.phase == "Succeeded"
