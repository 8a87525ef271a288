"""An autoscaling loop around a control plane: exporter, Prometheus, prometheus-adapter.

The exporter is an HTTP server with dcgm-exporter's format; the other two are the real programs. The
pods are simulated, so the load of their GPUs is computed: a Deployment's pods share its load.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import yaml
from kubernetes import client

from gpufleet.monitoring.autoscaling_models import load_autoscaling
from gpufleet.monitoring.autoscaling_rules import custom_rules, external_rules
from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.cluster.build import program
from gpufleet_sandbox.cluster.processes import Process, end, free_ports, start
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.pods import workload
from tests.monitoring.programs import Prometheus, start_prometheus

LOCAL = "127.0.0.1"
NAMESPACE = "default"  # of the adapter's Service
READY_SECONDS = 900.0
LINE = (
    '{field}{{gpu="{gpu}",UUID="GPU-{gpu:08d}",pci_bus_id="00000000:{gpu:02X}:00.0",'
    'device="nvidia{gpu}",modelName="NVIDIA H100 80GB HBM3",Hostname="gpu-1"{more}}} {value:g}\n'
)
UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"


def sample(field: str, gpu: int, value: float, **labels: str) -> str:
    """A line as dcgm-exporter prints it; `labels` are added to the common ones."""
    more = "".join(f',{name}="{text}"' for name, text in labels.items())
    return LINE.format(field=field, gpu=gpu, value=value, more=more)


@dataclass(slots=True)
class Exporter:
    """Metrics of the GPUs of the cluster's pods.

    `load`: (namespace, Deployment) -> percent of one GPU's time, shared by its running pods,
    at most 100 each. `samples`: lines for other pods.
    """

    cluster: Cluster
    load: dict[tuple[str, str], float] = field(default_factory=dict)
    samples: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The output of dcgm-exporter: a GPU per pod, and one without a pod."""
        core: Any = client.CoreV1Api(self.cluster.api)
        lines = [sample(UTILIZATION, 0, 0), *self.samples]
        for (namespace, name), percent in self.load.items():
            pods = core.list_namespaced_pod(namespace, label_selector=f"app={name}").items
            running = [pod.metadata.name for pod in pods if pod.status.phase == "Running"]
            value = round(min(100.0, percent / max(len(running), 1)))
            for pod in sorted(running):
                labels = {"container": "main", "namespace": namespace, "pod": pod}
                lines.append(sample(UTILIZATION, len(lines), value, **labels))
        return "".join(lines)


def serve(text: Callable[[], str], address: str = LOCAL, port: int = 0) -> ThreadingHTTPServer:
    """An exporter's server, by default on a free port; `shutdown` stops it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Do not log each scrape."""

    server = ThreadingHTTPServer((address, port), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return server


@dataclass(slots=True)
class Loop:
    """The running programs around one cluster."""

    cluster: Cluster
    folder: Path
    exporter: Exporter
    prometheus: Prometheus
    processes: list[Process]
    honor_labels: bool

    def start_adapter(self, config: dict[str, Any]) -> None:
        """Start prometheus-adapter with a configuration, and register its APIs."""
        [port] = free_ports(1)
        kubeconfig = self.cluster.kubeconfig
        rules = self.folder / "adapter.yaml"
        rules.write_text(yaml.safe_dump(config, sort_keys=False))
        flags = {
            "secure-port": port,
            "bind-address": LOCAL,
            "cert-dir": self.folder,
            "config": rules,
            "prometheus-url": self.prometheus.url,
            "metrics-relist-interval": "1s",
            "metrics-max-age": "10s",
            "lister-kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
        }
        adapter = program("prometheus-adapter", cache_dir() / "go", print)
        words = [adapter, *(f"--{flag}={value}" for flag, value in flags.items())]
        log = self.folder / "prometheus-adapter.log"
        self.processes.append(start("prometheus-adapter", words, log, {}))
        # after a failed first check of an API the server waits half a minute for the next
        ready = wait_until(lambda: _listens(port), READY_SECONDS)
        assert ready, self.log()
        self._register(port)

    def log(self) -> str:
        """The end of the adapter's log."""
        return (self.folder / "prometheus-adapter.log").read_text(errors="replace")[-4000:]

    def _register(self, port: int) -> None:
        """Create APIServices whose Service resolves to this machine: no pod runs the adapter."""
        core: Any = client.CoreV1Api(self.cluster.api)
        spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
        core.create_namespaced_service(
            NAMESPACE, {"metadata": {"name": "prometheus-adapter"}, "spec": spec}
        )
        for name in _apis():
            _registration(self.cluster).create_api_service(_api_service(name, port))
        ready = wait_until(self.serves, READY_SECONDS)
        assert ready, self.log()

    def serves(self) -> bool:
        """Whether the API server forwards requests to the adapter."""
        found = _registration(self.cluster).list_api_service().items
        states = {
            each.metadata.name: condition.status
            for each in found
            for condition in each.status.conditions or ()
            if condition.type == "Available"
        }
        return all(states.get(name) == "True" for name in _apis())


@contextmanager
def running(cluster: Cluster, folder: Path, *, honor_labels: bool = False) -> Iterator[Loop]:
    """Run the programs with the rules that gpufleet deploys.

    Prometheus labels the exporter's target as in a cluster. `honor_labels`: it keeps the labels
    namespace and pod of the series instead of those of the exporter's pod.
    """
    catalog = load_autoscaling()
    exporter = Exporter(cluster)
    server = serve(exporter.text)
    labels = {"namespace": "monitoring", "pod": "dcgm-exporter-0", "node": "gpu-1"}
    job = {
        "job_name": "gpu-metrics",
        "honor_labels": honor_labels,
        "static_configs": [{"targets": [f"{LOCAL}:{server.server_port}"], "labels": labels}],
    }
    config = {"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}
    process, prometheus = start_prometheus(folder, yaml.safe_dump(config))
    loop = Loop(cluster, folder, exporter, prometheus, [process], honor_labels)
    try:
        rules = {"rules": custom_rules(catalog), "externalRules": external_rules(catalog)}
        loop.start_adapter(rules)
        yield loop
    finally:
        end(loop.processes)
        server.shutdown()
        _unregister(cluster)


def _unregister(cluster: Cluster) -> None:
    there = {api.metadata.name for api in _registration(cluster).list_api_service().items}
    for name in there.intersection(_apis()):
        _registration(cluster).delete_api_service(name)
    core: Any = client.CoreV1Api(cluster.api)
    # the type of the response depends on the server's version
    core.delete_namespaced_service("prometheus-adapter", NAMESPACE, _preload_content=False)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOCAL, port)) == 0


def _apis() -> list[str]:
    return ["v1beta1.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io"]


def _registration(cluster: Cluster) -> Any:
    return client.ApiregistrationV1Api(cluster.api)


def _api_service(name: str, port: int) -> dict[str, Any]:
    version, group = name.split(".", 1)
    return {
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"name": "prometheus-adapter", "namespace": NAMESPACE, "port": port},
        },
    }


def deployment(name: str) -> dict[str, Any]:
    """A Deployment whose pods request a GPU each."""
    found = workload(name, replicas=1)
    gpu = {"nvidia.com/gpu": "1"}
    found["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": gpu}
    return found


@dataclass(slots=True)
class Watch:
    """Records what an autoscaler does."""

    read: Callable[[], tuple[int, str]]  # replicas, and the metric that the autoscaler reports
    began: float = field(default_factory=time.monotonic)
    seen: list[tuple[float, int, str]] = field(default_factory=list)

    def until(self, replicas: int, seconds: float) -> bool:
        """Wait for a number of replicas."""
        return wait_until(lambda: self._poll() == replicas, seconds)

    def _poll(self) -> int:
        replicas, metric = self.read()
        if not self.seen or self.seen[-1][1:] != (replicas, metric):
            self.seen.append((round(time.monotonic() - self.began, 1), replicas, metric))
        return replicas

    @property
    def counts(self) -> list[int]:
        """The successive numbers of replicas."""
        numbers = [replicas for _, replicas, _ in self.seen]
        return [n for place, n in enumerate(numbers) if place == 0 or numbers[place - 1] != n]

    def __str__(self) -> str:
        return ", ".join(f"{at:g} s: {count} ({metric})" for at, count, metric in self.seen)
