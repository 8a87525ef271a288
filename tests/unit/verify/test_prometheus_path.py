"""The path of a Prometheus's queries, for any port, prefix and TLS in the values of its chart."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

from gpufleet.verify.answers import query_path
from gpufleet.verify.cluster import CheckedCluster
from gpufleet.verify.inventory import Target


@pytest.mark.parametrize(
    ("port", "spec", "place"),
    [
        (9090, {}, "kps:9090/proxy"),
        (80, {"routePrefix": "/"}, "kps:80/proxy"),
        (9090, {"routePrefix": "/prometheus"}, "kps:9090/proxy/prometheus"),
        (9090, {"web": {"tlsConfig": {"cert": {}}}}, "https:kps:9090/proxy"),
        (9090, {"web": {"pageTitle": "x"}, "routePrefix": None}, "kps:9090/proxy"),
    ],
)
def test_the_path_follows_service_and_object(port: int, spec: dict[str, Any], place: str) -> None:
    ports = [client.V1ServicePort(port=port), client.V1ServicePort(port=8080)]
    metadata = client.V1ObjectMeta(name="kps", namespace="monitoring")
    service = client.V1Service(metadata=metadata, spec=client.V1ServiceSpec(ports=ports))
    path = f"/api/v1/namespaces/monitoring/services/{place}/api/v1/query"
    assert query_path(service, spec) == path


@pytest.mark.parametrize(
    ("operated", "namespace"), [(["monitoring"], "monitoring"), ([], "istio-system")]
)
def test_a_prometheus_of_an_operator_is_preferred(
    monkeypatch: pytest.MonkeyPatch, operated: list[str], namespace: str
) -> None:
    """Istio's own Prometheus has the same selector, and comes first in the list."""
    names = ["istio-system", "monitoring"] if operated else ["istio-system"]
    selector = {"app.kubernetes.io/name": "prometheus"}
    spec = client.V1ServiceSpec(ports=[client.V1ServicePort(port=9090)], selector=selector)
    services = [
        client.V1Service(metadata=client.V1ObjectMeta(name="p", namespace=each), spec=spec)
        for each in names
    ]
    cluster = CheckedCluster(Target("@local", ("gpu_cluster",), {}))
    cluster.__dict__["core"] = client.CoreV1Api()
    monkeypatch.setattr(cluster, "listed", lambda call: services)
    there = [{"metadata": {"namespace": each}, "spec": {}} for each in operated]
    monkeypatch.setattr(cluster, "custom", lambda kind: there)
    assert (
        cluster.query_path == f"/api/v1/namespaces/{namespace}/services/p:9090/proxy/api/v1/query"
    )
