"""The path of a Prometheus's queries, for any port, prefix and TLS in the values of its chart."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

from gpufleet.kube.prometheus import choose_prometheus, decode_response, series_of
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
    about = {"name": "kps", "namespace": "monitoring"}
    service = {"metadata": about, "spec": {"ports": [{"port": port}, {"port": 8080}]}}
    found = choose_prometheus([service], [{"metadata": about, "spec": spec}], "monitoring")
    assert found
    assert found.path == f"/api/v1/namespaces/monitoring/services/{place}/api/v1"


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


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>log in</html>"),
        (200, b"[" * 100_000),
        (200, b"[]"),
        (200, b'{"status": "success", "data": []}'),
        (200, b'{"data": {"result": [{"metric": {"pod": 1}, "value": [0, "1"]}]}}'),
        (200, b'{"data": {"result": [{"metric": {}, "value": "1"}]}}'),
        (503, b"no endpoints \x1b[2J\xff"),
    ],
)
def test_an_answer_of_another_program_is_a_reason(status: int, body: bytes) -> None:
    found = series_of(decode_response(status, body))
    assert isinstance(found, str)
    assert found.isprintable()
