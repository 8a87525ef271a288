"""Verdicts on load tests: real API server and Prometheus; the kubelet and the GPUs are fake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.cluster.processes import end
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.autoscaling import sample, serve
from tests.cluster.fake_node import FakeNode, fake_node
from tests.cluster.pods import SECONDS
from tests.cluster.scraping import Site, local_addresses
from tests.cluster.stacking import Bench
from tests.cluster.test_load_jobs import CHECKS, GFD
from tests.monitoring.programs import Prometheus, start_prometheus

NODE, GPUS = "fake", 2
SCRAPE = {"scrape_interval": "500ms", "scrape_timeout": "500ms"}
SAMPLES = 4
HEALTHY = {
    "DCGM_FI_DEV_GPU_UTIL": 99.0,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.9,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 4,
    "DCGM_FI_DEV_XID_ERRORS": 0,
}
SICK = {
    "DCGM_FI_DEV_GPU_UTIL": 40.0,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.3,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 4 + 64,
    "DCGM_FI_DEV_XID_ERRORS": 79,
}
LINE = "Worker {gpu}:0 [1004]: TensorEngineActive:  generated ???, dcgm 0 ({rate:.3g} gflops).\n"


def printed(*rates: float) -> str:
    """The output of dcgmproftester if each GPU has a constant rate."""
    lines = [LINE.format(gpu=gpu, rate=rate) for gpu, rate in enumerate(rates) for _ in range(5)]
    return "".join(lines) + "GPU 0, TestField 1004 test PASSED.\nAll Tests Passed.\n"


@dataclass(slots=True)
class Stage:
    """The node and its exporter: metrics of each GPU, with the name of the pod."""

    bench: Bench
    node: FakeNode
    prometheus: Prometheus | None = None
    pod: str = ""
    gpus: list[dict[str, float]] = field(default_factory=list)

    def text(self) -> str:
        labels = {"namespace": "default", "pod": self.pod}
        return "".join(
            sample(name, gpu, value, **labels)
            for gpu, values in enumerate(self.gpus)
            for name, value in values.items()
        )

    def seen(self) -> bool:
        """Whether Prometheus has enough samples of the pod."""
        assert self.prometheus
        counted = f'count_over_time(DCGM_FI_DEV_GPU_UTIL{{pod="{self.pod}"}}[1m])'
        found = self.prometheus.query(counted)
        return bool(found) and all(int(one["value"][1]) >= SAMPLES for one in found)

    def run(self, act: Callable[[Any], None]) -> dict[str, Any]:
        """`gpufleet verify`, while `act` updates the pod as its node would."""
        self.node.ready()
        data = {"verify_load": True, "verify_load_seconds": 5, "verify_load_start_seconds": 240}
        with ThreadPoolExecutor(1) as pool:
            checks = pool.submit(self.bench.verify, "load", **data)
            pod = self.node.pod()
            self.pod = pod.metadata.name
            act(pod)
            return checks.result()


@pytest.fixture(scope="module")
def stage(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, charts: Path
) -> Iterator[Stage]:
    """A node with two H100, its exporter, and Prometheus; the simulated nodes are cordoned."""
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
        node = ends.enter_context(fake_node(cluster, folder, addresses.pop(), NODE, GPUS, GFD))
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


def loaded(stage: Stage, *gpus: dict[str, float], log: str) -> dict[str, Any]:
    """The verdicts for GPUs with such metrics and a program that prints `log`."""

    def act(pod: Any) -> None:
        stage.node.log = log
        stage.gpus = [values | {"DCGM_FI_DEV_XID_ERRORS": 0} for values in gpus]
        began = stage.node.start(pod)
        one = f'DCGM_FI_DEV_GPU_UTIL{{pod="{stage.pod}"}}'
        assert stage.prometheus
        prometheus = stage.prometheus
        assert wait_until(lambda: prometheus.query(one), SECONDS)
        stage.gpus = list(gpus)
        assert wait_until(stage.seen, SECONDS)
        stage.node.end(pod, began)

    return stage.run(act)


@pytest.mark.extended
def test_a_healthy_node_passes_every_check(stage: Stage) -> None:
    checks = loaded(stage, HEALTHY, HEALTHY, log=printed(6.1e5, 6.0e5))
    outcomes = {name: checks[name]["outcome"] for name in CHECKS}
    left_out = checks["load_reaches_every_gpu_node"]
    assert outcomes.pop("load_reaches_every_gpu_node") == "skipped"
    assert left_out["message"].startswith("not tested: gpu-1: it is cordoned")
    assert set(outcomes.values()) == {"passed"}, checks


def test_a_sick_gpu_fails_each_check_with_its_reason(stage: Stage) -> None:
    checks = loaded(stage, HEALTHY, SICK, log=printed(6.1e5, 3.0e5))
    wanted = {
        "load_is_steady": (
            "GF778",
            "fake: GPU of worker 1:0 did 300000 gflops, the best one 610000",
        ),
        "load_is_seen": ("GF779", "fake: GPU 1: its tensor pipe worked 0.30 of the time"),
        "load_keeps_its_clocks": ("GF782", "fake: GPU 1: too hot (hardware)"),
        "load_causes_no_xid": ("GF783", "fake: GPU 1: XID 79"),
    }
    assert checks["load_finishes"]["outcome"] == "passed"
    for name, (code, text) in wanted.items():
        found = checks[name]
        assert (found["outcome"], found["code"]) == ("failed", code), found
        assert text in found["message"]
        assert "GPU 0" not in found["message"]


REFUSED = (
    "Wrong version of dcgmproftester is used. Expected Cuda version is 12. "
    "Installed Cuda version is 13."
)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("status", "log", "said"),
    [
        (244, REFUSED, f"exit status 244; {REFUSED}"),
        (0, printed(6.0e5), "1 of 2 GPUs were under load"),
        (0, "", "it printed nothing"),
    ],
)
def test_a_program_that_ran_no_load_is_reported(
    stage: Stage, status: int, log: str, said: str
) -> None:
    def act(pod: Any) -> None:
        stage.node.log = log
        stage.node.end(pod, stage.node.start(pod), status)

    found = stage.run(act)["load_finishes"]
    assert (found["outcome"], found["code"]) == ("failed", "GF777"), found
    assert said in found["message"]


@pytest.mark.extended
def test_an_unreachable_prometheus_is_reported_with_the_reason(stage: Stage) -> None:
    core = stage.bench.core
    core.delete_namespaced_pod("prometheus-0", "metrics")

    def gone() -> bool:
        [found] = core.list_namespaced_endpoints("metrics").items
        return not any(subset.addresses for subset in found.subsets or ())

    assert wait_until(gone, SECONDS)

    def act(pod: Any) -> None:
        stage.node.log = printed(6.1e5, 6.0e5)
        stage.node.end(pod, stage.node.start(pod))

    checks = stage.run(act)
    assert checks["load_finishes"]["outcome"] == "passed", checks
    for name in ("load_is_seen", "load_keeps_its_clocks", "load_causes_no_xid"):
        found = checks[name]
        assert found["outcome"] == "skipped", found
        assert "Prometheus does not answer through the API server: 503" in found["message"]
