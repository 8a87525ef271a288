"""The loop of autoscaling: exporter, Prometheus, prometheus-adapter, aggregation, autoscaler.

All of it but the exporter and the pods is real; the adapter has the rules that are deployed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from kubernetes import client

from gpufleet.catalog.autoscaling import load_autoscaling
from gpufleet.catalog.charts import kubernetes_minor
from gpufleet.plan.autoscalers import Scaling, hpa
from gpufleet.plan.autoscaling import custom_rules, external_rules
from gpufleet.sandbox.cluster import Cluster
from tests.cluster.autoscaling import Exporter, Loop, Watch, deployment

NAME, METRIC, TARGET, MOST = "trainer", "duty_cycle_current", 60, 6
BUSY, CALM = 360, 20  # percent of one GPU's time, shared by the pods
SECONDS = 40


@pytest.fixture(scope="module")
def loop(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """The programs around the cluster, with the rules that gpufleet deploys."""
    if not cluster.ours:
        pytest.skip("the adapter runs on this machine, where a foreign API server cannot reach it")
    catalog = load_autoscaling()
    config = {"rules": custom_rules(catalog), "externalRules": external_rules(catalog)}
    found = Loop(cluster, tmp_path_factory.mktemp("loop"), Exporter(cluster))
    server = found.exporter.serve()
    try:
        found.adapter(found.prometheus(server.server_port), config)
        yield found
    finally:
        found.end()
        server.shutdown()


@pytest.fixture
def autoscaled(loop: Loop, namespace: str) -> Callable[[str], Watch]:
    """`autoscaled(metric)`: a Deployment of one pod and its autoscaler, made from our template."""

    def make(metric: str) -> Watch:
        catalog, api = load_autoscaling(), loop.cluster.api
        versions: Any = client.AutoscalingApi(api).get_api_group().versions
        version = catalog.hpa_version([each.group_version for each in versions])
        known = catalog.metric(METRIC)
        assert known
        wanted = Scaling(namespace, NAME, known, str(TARGET), MOST, calm_seconds=0)
        text = hpa(catalog, wanted, version, kubernetes_minor(loop.cluster.version))
        body = yaml.safe_load(text.replace(METRIC, metric))
        apps: Any = client.AppsV1Api(api)
        apps.create_namespaced_deployment(namespace, deployment(NAME))
        place = (*version.split("/"), namespace, "horizontalpodautoscalers")
        objects: Any = client.CustomObjectsApi(api)
        objects.create_namespaced_custom_object(*place, body)

        def read() -> tuple[int, str]:
            found = objects.get_namespaced_custom_object(*place, NAME)
            seen = found.get("status", {}).get("currentMetrics") or [{}]
            pods = seen[0].get("pods") or {}
            value = pods.get("currentAverageValue") or pods.get("current", {}).get("averageValue")
            scale = apps.read_namespaced_deployment(NAME, namespace)
            return scale.spec.replicas, f"{value or '<unknown>'}/{TARGET}"

        return Watch(read)

    return make


def test_a_deployment_grows_under_load_and_shrinks_again(
    loop: Loop,
    namespace: str,
    autoscaled: Callable[[str], Watch],
    record_property: Callable[[str, object], None],
) -> None:
    loop.exporter.load[namespace, NAME] = BUSY
    watch = autoscaled(METRIC)
    grown = watch.until(MOST, SECONDS)
    loop.exporter.load[namespace, NAME] = CALM
    shrunk = grown and watch.until(1, SECONDS)
    record_property("replicas", f"Kubernetes {loop.cluster.version}: {watch}")
    assert grown, (str(watch), loop.log("prometheus-adapter"))
    assert shrunk, str(watch)
    assert watch.counts[0] == 1
    assert watch.counts[-1] == 1
    assert max(watch.counts) == MOST
