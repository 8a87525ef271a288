"""A real Prometheus that discovers exporters through a real API server, as in a cluster.

The exporters are HTTP servers with dcgm-exporter's format. Their pods are simulated, with the
addresses on which the servers listen: the API server rejects endpoints in 127.x, so these are other
addresses on the loopback interface.
"""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from http.server import ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from gpufleet_sandbox.cluster.build import program
from gpufleet_sandbox.cluster.launch import CLIENT_ENVIRONMENT
from gpufleet_sandbox.cluster.processes import end
from gpufleet_sandbox.paths import cache_dir
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.autoscaling import serve
from tests.cluster.pods import SECONDS, pod
from tests.cluster.stacking import Bench
from tests.monitoring.fleet import NODES, Gpu, Node, Pod
from tests.monitoring.fleet_metrics import exporter_labels, readings
from tests.monitoring.programs import Prometheus, start_prometheus

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "templates" / "monitoring" / "alerts" / "rules.yaml"
NAMESPACE, EXPORTER, PORT = "monitoring", "app.kubernetes.io/name=dcgm-exporter", 9400
# For benchmarks of network devices (RFC 2544): no other machine has these addresses.
BLOCK = ip_network("198.18.0.0/15")
# Responses until the controllers have created a namespace's account, and its token (1.18).
NO_ACCOUNT = (403, 500)
SCRAPES = 60.0  # seconds: the job's interval is 15
NEWER, OLDER = "hostname", "Hostname"  # the label in exporters since 4.8.3, and before
WORK = Pod("research", "train-1", "gpu-2", tuple(range(8)), 0.9)
FLEET = (NODES[0], NODES[1], replace(NODES[2], spelling=OLDER, ready=True))  # gpu-1, -2, -3


@contextmanager
def local_addresses() -> Iterator[list[str]]:
    """254 addresses that only this machine reaches, inside the `with` block."""
    for network in BLOCK.subnets(new_prefix=24):
        route = ["local", str(network), "dev", "lo"]
        done = subprocess.run(["ip", "route", "add", *route], capture_output=True, text=True)
        if done.returncode == 0:
            break
        assert "File exists" in done.stderr, done.stderr  # another test uses it
    else:
        raise AssertionError(f"every network of {BLOCK} is in use")
    try:
        yield [str(address) for address in network.hosts()]
    finally:
        subprocess.run(["ip", "route", "del", *route], check=True)


@dataclass(slots=True)
class Exporter:
    """dcgm-exporter on one node; `names_pods`: whether its metrics name the kubelet's pods."""

    node: Node
    address: str
    names_pods: bool = True
    server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        self.server = serve(self.text, self.address, PORT)

    def stop(self) -> None:
        """Stop it if it runs; its port is closed immediately."""
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def text(self) -> str:
        samples: dict[str, list[str]] = {}
        for index in range(8):
            gpu = Gpu(self.node, index, WORK if self.node.name == WORK.node else None)
            for metric, (value, _) in readings(gpu):
                samples.setdefault(metric, []).append(f"{self._labels(gpu)} {value:g}")
            if gpu.xid and self.node.spelling == NEWER:
                labels = self._labels(gpu, window_size_in_ms="300000", xid=str(gpu.xid))
                samples.setdefault("DCGM_EXP_XID_ERRORS_COUNT", []).append(f"{labels} 1")
        lines = []
        for metric, found in samples.items():
            lines += [f"# HELP {metric} of a GPU.", f"# TYPE {metric} gauge"]
            lines += [metric + line for line in found]
        return "\n".join(lines) + "\n"

    def _labels(self, gpu: Gpu, **more: str) -> str:
        """Labels as exported: without the target's, and the workload's without a prefix."""
        target = ("job", "instance", "namespace", "pod")
        found = {
            name.removeprefix("exported_"): text
            for name, text in exporter_labels(gpu).items()
            if name not in target and (self.names_pods or not name.startswith("exported_"))
        }
        if "pod" in found:
            found["container"] = "main"
        found |= {"DCGM_FI_DRIVER_VERSION": "580.95.05", **more}
        return "{" + ",".join(f'{name}="{text}"' for name, text in found.items()) + "}"


@dataclass(slots=True)
class Site:
    """A cluster that gpufleet has deployed, its exporters by node, and free addresses."""

    bench: Bench
    folder: Path
    addresses: list[str]
    exporters: dict[str, Exporter] = field(default_factory=dict)
    pods: dict[str, str] = field(default_factory=dict)  # of the exporters, by node

    @property
    def core(self) -> Any:
        return self.bench.core

    def place(self, found: Any, address: str) -> None:
        """Set the address of a simulated pod, as a kubelet does."""
        about = found.metadata
        addresses = [{"$patch": "replace"}, {"ip": address}]  # else kwok's stays in the list
        status = {"podIP": address, "podIPs": addresses}
        self.core.patch_namespaced_pod_status(about.name, about.namespace, {"status": status})

    def run_pod(
        self, namespace: str, name: str, labels: dict[str, str], address: str = "", **spec: Any
    ) -> None:
        """Run a simulated pod, at `address` if given; it ends with the cluster."""
        body = pod(labels, name=name)
        body["spec"] |= spec

        def created() -> bool:
            try:
                self.core.create_namespaced_pod(namespace, body)
            except ApiException as error:
                if error.status not in NO_ACCOUNT:
                    raise
                return False
            return True

        def found() -> Any:
            there = self.core.read_namespaced_pod(name, namespace)
            return there if there.status.phase == "Running" else None

        assert wait_until(created, SECONDS)
        running = wait_until(found, SECONDS)
        assert running
        if address:
            self.place(running, address)

    def running(self, namespace: str, selector: str) -> list[Any]:
        found = self.core.list_namespaced_pod(namespace, label_selector=selector).items
        return [each for each in found if each.status.phase == "Running"]

    def start_exporters(self) -> None:
        """Start one for every pod of the exporter's DaemonSet."""

        def there() -> bool:
            return len(self.running(NAMESPACE, EXPORTER)) == len(FLEET)

        assert wait_until(there, SECONDS)
        nodes = {node.name: node for node in FLEET}
        for found in self.running(NAMESPACE, EXPORTER):
            name = found.spec.node_name
            self.exporters[name] = Exporter(nodes[name], self.addresses.pop())
            self.exporters[name].start()
            self.pods[name] = found.metadata.name
            self.place(found, self.exporters[name].address)

    def selector(self, program: str) -> dict[str, str]:
        """The labels with which the chart's Service selects the pods of a program."""
        services = self.core.list_namespaced_service(NAMESPACE).items
        selectors = [service.spec.selector or {} for service in services]
        [found] = [each for each in selectors if each.get("app.kubernetes.io/name") == program]
        return dict(found)

    def additional_jobs(self) -> list[dict[str, Any]]:
        """The additional scrape jobs for Prometheus in the chart's Secret."""
        key = "additional-scrape-configs.yaml"
        secrets = self.core.list_namespaced_secret(NAMESPACE).items
        [text] = [secret.data[key] for secret in secrets if key in (secret.data or {})]
        return list(yaml.safe_load(base64.b64decode(text)))

    def values(self, release: str) -> dict[str, Any]:
        """The values that gpufleet set for a release."""
        words = ["get", "values", release, "-n", NAMESPACE, "-o", "yaml"]
        words += ["--kubeconfig", str(self.bench.cluster.kubeconfig)]
        done = subprocess.run(
            [self.bench.cluster.helm, *words], capture_output=True, text=True, check=True
        )
        return dict(yaml.safe_load(done.stdout))

    @contextmanager
    def prometheus(self, name: str, jobs: list[dict[str, Any]]) -> Iterator[Prometheus]:
        """A real Prometheus with gpufleet's rules, at the address of its simulated pod."""
        folder = self.folder / name
        folder.mkdir()
        config = {
            "global": {"evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [_with_access(job, self.access(folder)) for job in jobs],
        }
        address = self.addresses.pop()
        with ExitStack() as ends:
            process, found = start_prometheus(
                folder,
                yaml.safe_dump(config),
                program=program("prometheus", cache_dir() / "go", print),
                environment=CLIENT_ENVIRONMENT,
                address=address,
                port=9090,
            )
            ends.callback(end, [process])
            yield found

    def access(self, folder: Path) -> dict[str, Any]:
        """The access that a Prometheus pod has by default: the API's address and the account's
        token."""
        configuration = self.bench.cluster.api.configuration
        token = folder / "token"
        token.write_text(self._token())
        return {
            "api_server": configuration.host,
            "authorization": {"credentials_file": str(token)},
            "tls_config": {"ca_file": configuration.ssl_ca_cert},
        }

    def _token(self) -> str:
        body = {"spec": {"audiences": [], "expirationSeconds": 3600}}
        found = self.core.create_namespaced_service_account_token("prometheus", NAMESPACE, body)
        return str(found.status.token)


def _with_access(job: dict[str, Any], access: dict[str, Any]) -> dict[str, Any]:
    """The job, with access to the API server for a Prometheus outside of the cluster."""
    found = [entry | access for entry in job["kubernetes_sd_configs"]]
    return job | {"kubernetes_sd_configs": found}


def allow_prometheus(site: Site) -> None:
    """Create an account with the permissions of Prometheus in kube-prometheus-stack."""
    rights: Any = client.RbacAuthorizationV1Api(site.bench.cluster.api)
    site.core.create_namespaced_service_account(NAMESPACE, {"metadata": {"name": "prometheus"}})
    verbs = ["get", "list", "watch"]
    core = ["nodes", "nodes/metrics", "services", "endpoints", "pods"]
    rules = [
        {"apiGroups": [""], "resources": core, "verbs": verbs},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": verbs},
    ]
    about = {"metadata": {"name": "prometheus"}}
    rights.create_cluster_role({**about, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "prometheus"}
    who = [{"kind": "ServiceAccount", "name": "prometheus", "namespace": NAMESPACE}]
    rights.create_cluster_role_binding({**about, "roleRef": role, "subjects": who})


def monitor_job(monitor: dict[str, Any]) -> dict[str, Any]:
    """The scrape job for the ServiceMonitor that the exporter's chart renders from such values.

    It follows the operator's documentation: a target is a ready port of an Endpoints object whose
    Service matches the selector. `job` is the name of the Service; namespace, service, pod,
    container and endpoint are labels; the monitor's relabelings follow in Prometheus' format.
    https://prometheus-operator.dev/docs/api-reference/api/
    """

    def label(target: str, source: str) -> dict[str, Any]:
        return {"source_labels": [f"__meta_kubernetes_{source}"], "target_label": target}

    def keep(source: str, regex: str) -> dict[str, Any]:
        return {
            "source_labels": [f"__meta_kubernetes_{source}"], "regex": regex, "action": "keep"
        }  # fmt: skip

    own = [
        {"source_labels": entry["sourceLabels"], "target_label": entry["targetLabel"]}
        for entry in monitor.get("relabelings", ())
    ]
    return {
        "job_name": "serviceMonitor/monitoring/dcgm-exporter/0",
        "honor_labels": monitor["honorLabels"],
        "scrape_interval": monitor["interval"],
        "kubernetes_sd_configs": [{"role": "endpoints", "namespaces": {"names": [NAMESPACE]}}],
        "relabel_configs": [
            keep("service_label_app_kubernetes_io_name", "dcgm-exporter"),
            keep("endpoint_port_name", "metrics"),
            label("namespace", "namespace"),
            label("service", "service_name"),
            label("pod", "pod_name"),
            label("container", "pod_container_name"),
            label("job", "service_name"),
            label("endpoint", "endpoint_port_name"),
            *own,
        ],
    }
