"""The autoscaling loop: exporter, Prometheus, prometheus-adapter, aggregation, autoscaler.

All but the exporter and the pods is real; the adapter has the deployed rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from kubernetes import client

from gpufleet.helm.chart_choice import kubernetes_minor
from gpufleet.monitoring.autoscalers import Scaling, hpa_version, render_hpa
from gpufleet.monitoring.autoscaling_models import load_autoscaling
from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.autoscaling import Loop, Watch, deployment, running
from tests.cluster.stacking import Bench

NAME, METRIC, TARGET, MOST = "trainer", "duty_cycle_current", 60, 6
BUSY, CALM = 360, 20  # percent of one GPU's time, shared by the pods
SECONDS = 40
PLURAL = "horizontalpodautoscalers"


def served(loop: Loop) -> str:
    """The newest version of the autoscaler's API that the cluster serves."""
    versions: Any = client.AutoscalingApi(loop.cluster.api).get_api_group().versions
    return hpa_version(load_autoscaling(), [each.group_version for each in versions])


@pytest.fixture(scope="module")
def loop(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """The programs around the cluster, with the rules that gpufleet deploys."""
    if not cluster.ours:
        pytest.skip("the adapter runs on this machine, where a foreign API server cannot reach it")
    with running(cluster, tmp_path_factory.mktemp("loop")) as found:
        yield found


@pytest.fixture
def autoscaled(loop: Loop, namespace: str) -> Callable[..., Watch]:
    """`autoscaled(metric)`: a Deployment of one pod and its autoscaler from gpufleet's template."""

    def make(metric: str, name: str = NAME, **labels: str) -> Watch:
        catalog, api = load_autoscaling(), loop.cluster.api
        version = served(loop)
        known = catalog.metric(METRIC)
        assert known
        wanted = Scaling(namespace, name, known, str(TARGET), MOST, stabilization_seconds=0)
        text = render_hpa(catalog, wanted, version, kubernetes_minor(loop.cluster.version))
        body = yaml.safe_load(text.replace(METRIC, metric))
        if labels:
            named = body["spec"]["metrics"][0]["pods"]["metric"]
            named["selector"] = {"matchLabels": labels}
        apps: Any = client.AppsV1Api(api)
        apps.create_namespaced_deployment(namespace, deployment(name))
        place = (*version.split("/"), namespace, PLURAL)
        objects: Any = client.CustomObjectsApi(api)
        objects.create_namespaced_custom_object(*place, body)

        def read() -> tuple[int, str]:
            found = objects.get_namespaced_custom_object(*place, name)
            seen = found.get("status", {}).get("currentMetrics") or [{}]
            pods = seen[0].get("pods") or {}
            value = pods.get("currentAverageValue") or pods.get("current", {}).get("averageValue")
            scale = apps.read_namespaced_deployment(name, namespace)
            return scale.spec.replicas, f"{value or '<unknown>'}/{TARGET}"

        return Watch(read)

    return make


@pytest.mark.claim(
    "A Deployment grows from 1 to 6 pods under load and shrinks again, with real "
    "Prometheus, adapter and autoscaler.",
    level=6,
)
def test_a_deployment_grows_under_load_and_shrinks_again(
    loop: Loop,
    namespace: str,
    autoscaled: Callable[..., Watch],
    record_property: Callable[[str, object], None],
) -> None:
    loop.exporter.load[namespace, NAME] = BUSY
    watch = autoscaled(METRIC)
    grown = watch.until(MOST, SECONDS)
    loop.exporter.load[namespace, NAME] = CALM
    shrunk = grown and watch.until(1, SECONDS)
    record_property("replicas", f"Kubernetes {loop.cluster.version}: {watch}")
    assert grown, (str(watch), loop.log())
    assert shrunk, str(watch)
    assert watch.counts[0] == 1
    assert watch.counts[-1] == 1
    assert max(watch.counts) == MOST


WRONG = {  # Deployment -> metric and labels of its autoscaler, expected message
    "misnamed": (
        "duty_cycle",
        {},
        "no metric is named 'duty_cycle' (did you mean duty_cycle_current?); available:",
    ),
    "mislabelled": (
        METRIC,
        {"device": "nvidia99"},
        "duty_cycle_current has no series with the labels device=nvidia99",
    ),
    "unscraped": (
        METRIC,
        {},
        "duty_cycle_current exists, but for other pods than those of Deployment unscraped",
    ),
}


@pytest.mark.claim("An autoscaler that shows `<unknown>` is explained.", level=6)
@pytest.mark.extended
def test_an_unknown_metric_is_explained(
    loop: Loop, namespace: str, autoscaled: Callable[..., Watch]
) -> None:
    loop.exporter.load = {(namespace, name): CALM for name in (NAME, "misnamed", "mislabelled")}
    for name, (metric, labels, _) in WRONG.items():
        autoscaled(metric, name, **labels)
    well = autoscaled(METRIC)
    assert wait_until(lambda: "<unknown>" not in well.read()[1], SECONDS)
    assert wait_until(lambda: failing(loop, namespace) == set(WRONG), SECONDS)
    found = Bench(loop.cluster, loop.folder).verify()["autoscalers_see_their_metrics"]
    assert (found["outcome"], found["code"]) == ("failed", "GF775")
    for name, (_, _, said) in WRONG.items():
        assert f"{namespace}/{name}: {said}" in found["message"]
    assert "gpu_utilization_percent" in found["message"]
    assert f"{namespace}/{NAME}:" not in found["message"]


def failing(loop: Loop, namespace: str) -> set[str]:
    """Names of the autoscalers that report a missing metric."""
    found: Any = client.CustomObjectsApi(loop.cluster.api).list_namespaced_custom_object(
        *served(loop).split("/"), namespace, PLURAL
    )
    return {
        item["metadata"]["name"]
        for item in found["items"]
        for condition in item.get("status", {}).get("conditions") or ()
        if condition.get("reason") == "FailedGetPodsMetric"
    }
