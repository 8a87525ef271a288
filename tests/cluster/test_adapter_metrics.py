"""The metrics of the real prometheus-adapter from DCGM's series, with the deployed rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from gpufleet.monitoring.autoscalers import Scaling, pods_query
from gpufleet.monitoring.autoscaling_models import load_autoscaling
from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.autoscaling import Loop, running, sample
from tests.cluster.conftest import KUBERNETES
from tests.cluster.pods import SECONDS, pod
from tests.selection import some

GPUS = [  # of the pod trainer-1-a: field, and the values of its two GPUs
    ("DCGM_FI_DEV_GPU_UTIL", 90, 30),
    ("DCGM_FI_DEV_FB_USED", 1024, 2048),
    ("DCGM_FI_DEV_GPU_TEMP", 60, 71),
    ("DCGM_FI_DEV_POWER_USAGE", 250, 300.5),
]
WANTED = {
    "duty_cycle_current": "60",
    "memory_used_bytes_current": str(3 * 2**30),
    "temperature_celsius_current": "71",
    "power_usage_milliwatts_current": "550500",
    "gpu_utilization_percent": "60",
    "gpu_memory_used_bytes": str(3 * 2**30),
    "gpu_temperature_celsius": "71",
    "gpu_power_usage_watts": "550500m",
}
TRAINER, PART = "trainer-1-a", "partitioned-1-a"

pytestmark = [
    pytest.mark.parametrize("cluster", KUBERNETES[:1], indirect=True),
    pytest.mark.claim(
        "The adapter's values are right for pods with several GPUs and with a part of one.",
        level=6,
    ),
]


@pytest.fixture(params=some(["exported labels", "honored labels"], ["exported labels"]))
def loop(
    request: pytest.FixtureRequest, simulated: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Loop]:
    """A running stack for each way in which Prometheus can label the series of an exporter."""
    honored = request.param == "honored labels"
    with running(simulated, tmp_path_factory.mktemp("loop"), honor_labels=honored) as found:
        yield found


def values(loop: Loop, namespace: str, metric: str) -> dict[str, str]:
    """Pod -> value, as an autoscaler gets them."""
    objects: Any = client.CustomObjectsApi(loop.cluster.api)
    try:
        answer = objects.get_cluster_custom_object(
            "custom.metrics.k8s.io", "v1beta1", f"namespaces/{namespace}/pods/*", metric
        )
    except ApiException as error:
        if error.status in (404, 503):  # no such metric, or no such API, yet
            return {}
        raise
    return {item["describedObject"]["name"]: item["value"] for item in answer["items"]}


def test_values_of_pods(loop: Loop, namespace: str) -> None:
    core: Any = client.CoreV1Api(loop.cluster.api)
    for name in (TRAINER, PART):
        core.create_namespaced_pod(namespace, pod({"app": "trainer"}, name=name))
    labels = {"container": "main", "namespace": namespace, "pod": TRAINER}
    part = {"GPU_I_PROFILE": "1g.10gb", "GPU_I_ID": "7", **labels, "pod": PART}
    loop.exporter.samples = [
        *(sample(field, gpu, value[gpu - 1], **labels) for field, *value in GPUS for gpu in (1, 2)),
        sample("DCGM_FI_DEV_GPU_UTIL", 3, 0, **part),
        sample("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 3, 0.25, **part),
    ]

    def found() -> dict[str, str | None]:  # each metric appears at a different time
        return {name: values(loop, namespace, name).get(TRAINER) for name in WANTED}

    wait_until(lambda: found() == WANTED, SECONDS)
    assert found() == WANTED
    assert values(loop, namespace, "duty_cycle_current")[PART] == "25"
    objects: Any = client.CustomObjectsApi(loop.cluster.api)
    whole = objects.get_namespaced_custom_object(
        "external.metrics.k8s.io", "v1beta1", namespace, "gpu_memory_used_bytes", ""
    )
    assert [item["value"] for item in whole["items"]] == [WANTED["gpu_memory_used_bytes"]]


def test_the_query_for_keda_gives_the_sum_over_the_pods(loop: Loop, namespace: str) -> None:
    metric = load_autoscaling().metric("duty_cycle_current")
    assert metric
    loop.exporter.samples = [
        sample("DCGM_FI_DEV_GPU_UTIL", gpu, 40, namespace=namespace, pod=f"trainer-5d9c-x{gpu}")
        for gpu in (1, 2)
    ]
    variants = load_autoscaling().labels
    variant = variants[-2 if loop.honor_labels else -1]
    asked = f'{metric.fields[0].field}{{{variant.pod}=~"trainer.*"}}'
    assert wait_until(lambda: len(loop.prometheus.query(asked)) == 2, SECONDS)
    scaling = Scaling(namespace, "trainer", metric, "60", 6)
    [series] = loop.prometheus.query(pods_query(scaling, variant))
    assert series["value"][1] == "80"
