"""`gpufleet verify -k load`: real API server and Prometheus; kubelet and GPUs are fakes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.cluster.processes import end
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.autoscaling import sample, serve
from tests.cluster.fake_node import FakeNode, fake_node
from tests.cluster.pods import SECONDS
from tests.cluster.scraping import Site, local_addresses
from tests.cluster.stacking import Bench
from tests.monitoring.programs import Prometheus, start_prometheus

pytestmark = pytest.mark.claim(
    "The load test puts one pod on every free GPU, judges it by Prometheus, and removes it.",
    level=6,
)

NODE, GPUS = "fake", 2
SCRAPE = {"scrape_interval": "500ms", "scrape_timeout": "500ms"}
SAMPLES = 4
DATA = {
    "verify_load": True, "verify_load_image": "registry.example/load:1",
    "verify_load_seconds": 5, "verify_load_start_seconds": 240,
}  # fmt: skip


@dataclass(slots=True)
class Stage:
    """The node and its exporter. `busy`: name of a pod -> percent of the GPU that it holds."""

    bench: Bench
    node: FakeNode
    prometheus: Prometheus | None = None
    busy: dict[str, float] = field(default_factory=dict)

    def text(self) -> str:
        return "".join(
            sample("DCGM_FI_DEV_GPU_UTIL", gpu, value, namespace="default", pod=pod)
            for gpu, (pod, value) in enumerate(self.busy.items())
        )

    def seen(self) -> bool:
        """Whether Prometheus has enough samples of each pod."""
        assert self.prometheus
        pods = "|".join(self.busy)
        found = self.prometheus.query(f'count_over_time(DCGM_FI_DEV_GPU_UTIL{{pod=~"{pods}"}}[1m])')
        return len(found) == len(self.busy) and all(
            int(one["value"][1]) >= SAMPLES for one in found
        )

    def run(self, *percent: float, status: int = 0) -> dict[str, Any]:
        """The checks, while the node's pods run at these loads and end with this exit status."""
        self.node.ready()
        self.busy = {}
        with ThreadPoolExecutor(1) as pool:
            checks = pool.submit(self.bench.verify, "load", **DATA)
            pods = self.node.pods(GPUS)
            began = [self.node.start(pod) for pod in pods]
            if percent:
                self.busy = dict(zip((pod.metadata.name for pod in pods), percent, strict=True))
                assert wait_until(self.seen, SECONDS)
            for pod, start in zip(pods, began, strict=True):
                self.node.end(pod, start, status)
            return checks.result()


@pytest.fixture(scope="module")
def stage(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, charts: Path
) -> Iterator[Stage]:
    """A node with two GPUs, its exporter, and Prometheus; the simulated nodes are cordoned."""
    if not cluster.ours:
        pytest.skip("a foreign API server does not reach a kubelet on this machine")
    folder = tmp_path_factory.mktemp("load")
    bench = Bench(cluster, charts)
    simulated = [node.metadata.name for node in bench.core.list_node().items]
    with ExitStack() as ends:
        addresses = ends.enter_context(local_addresses())
        for name in simulated:
            bench.core.patch_node(name, {"spec": {"unschedulable": True}})
            ends.callback(bench.core.patch_node, name, {"spec": {"unschedulable": None}})
        node = ends.enter_context(fake_node(cluster, NODE, GPUS))
        found = Stage(bench, node)
        server = serve(found.text)
        ends.callback(server.shutdown)
        job = {
            "job_name": "gpus", "honor_labels": True, **SCRAPE,
            "static_configs": [{"targets": [f"127.0.0.1:{server.server_port}"]}],
        }  # fmt: skip
        config = yaml.safe_dump({"scrape_configs": [job]})
        address = addresses.pop()
        process, found.prometheus = start_prometheus(folder, config, address=address, port=9090)
        ends.callback(end, [process])
        ends.callback(bench.core.delete_namespace, "metrics")
        add_prometheus_service(Site(bench, folder, addresses), address)
        yield found


def add_prometheus_service(site: Site, address: str) -> None:
    """Add a Service as for a Prometheus in the cluster, with a simulated pod at the address."""
    labels = {"app.kubernetes.io/name": "prometheus"}
    site.core.create_namespace({"metadata": {"name": "metrics"}})
    ports = [{"port": 9090, "targetPort": 9090}]
    service = {"metadata": {"name": "prometheus"}, "spec": {"selector": labels, "ports": ports}}
    site.core.create_namespaced_service("metrics", service)
    tolerations = [{"operator": "Exists"}]
    site.run_pod(
        "metrics", "prometheus-0", labels, address, nodeName="gpu-1", tolerations=tolerations
    )

    def there() -> bool:
        found = site.core.list_namespaced_endpoints("metrics").items  # none, at first
        subsets = [subset for each in found for subset in each.subsets or ()]
        return [each.ip for subset in subsets for each in subset.addresses or ()] == [address]

    assert wait_until(there, SECONDS)


def nothing_is_left(stage: Stage) -> bool:
    stage.node.confirm_deletions()
    bench = stage.bench
    batch: Any = client.BatchV1Api(bench.cluster.api)
    ours = "app.kubernetes.io/managed-by=gpufleet"
    jobs = batch.list_namespaced_job("default", label_selector=ours).items
    return not jobs and not bench.core.list_namespaced_pod("default", label_selector=ours).items


def test_busy_gpus_pass_and_the_job_is_removed(stage: Stage) -> None:
    checks = stage.run(99.0, 97.0)
    assert [checks[f"load_{name}"]["outcome"] for name in ("finishes", "is_seen")] == [
        "passed", "passed",
    ], checks  # fmt: skip
    assert wait_until(lambda: nothing_is_left(stage), SECONDS)


@pytest.mark.extended
def test_a_gpu_that_idles_under_load_is_named(stage: Stage) -> None:
    found = stage.run(99.0, 40.0)["load_is_seen"]
    assert (found["outcome"], found["code"]) == ("failed", "GF779"), found
    assert "GPU 1: busy 40 %" in found["message"]
    assert "GPU 0" not in found["message"]


@pytest.mark.extended
def test_a_failed_pod_fails_the_check(stage: Stage) -> None:
    checks = stage.run(status=244)
    assert (checks["load_finishes"]["outcome"], checks["load_finishes"]["code"]) == (
        "failed", "GF777",
    ), checks  # fmt: skip
    assert checks["load_is_seen"]["outcome"] == "skipped"
    assert wait_until(lambda: nothing_is_left(stage), SECONDS)


@pytest.mark.extended
def test_a_prometheus_without_the_series_fails_the_check(stage: Stage) -> None:
    checks = stage.run()
    assert checks["load_finishes"]["outcome"] == "passed", checks
    assert checks["load_is_seen"]["code"] == "GF779", checks


@pytest.mark.extended
def test_nothing_runs_unless_configured(stage: Stage) -> None:
    checks = stage.bench.verify("load")
    for name in ("load_finishes", "load_is_seen"):
        found = checks[name]
        assert (found["outcome"], found["message"]) == ("skipped", "verify_load is not set")
