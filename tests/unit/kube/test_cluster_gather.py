"""Requests to the API: optional ones, and errors that are reported."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.kube.facts import ReleaseRef
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.gather import FIRST, ApiRequest, ask_all, gather_answers
from gpufleet.kube.operations.refused import ApiError
from gpufleet.kube.system_pods import parse_system_pods


class Refusing:
    """An API that responds to every request with one status; 404 as for an unknown path."""

    def __init__(self, status: int, said: str = "404 page not found") -> None:
        self.status, self.said = status, said

    def get(self, path: str, *more: object, **query: str) -> dict[str, Any]:
        message = self.said if self.status == 404 else "why"
        raise ApiError(f"GET {path}", self.status, {"message": message}, "test")

    list = get


STACK = ReleaseRef("monitoring", "stack")
CRD_NAMES = ("prometheuses.monitoring.coreos.com", "things.example.com")
REVISION = {
    "metadata": {
        "name": "sh.helm.release.v1.stack.v1",
        "namespace": "monitoring",
        "labels": {"owner": "helm", "name": "stack", "version": "1", "status": "deployed"},
    }
}


class Partly:
    """A cluster with a Prometheus, a release and a CRD of others; one path responds with 503."""

    def __init__(self, down: str) -> None:
        self.down = down

    def get(self, path: str, *more: object, **query: str) -> dict[str, Any]:
        if path == self.down:
            raise ApiError(f"GET {path}", 503, {"message": "no healthy upstream"}, "test")
        names = [name.partition(".")[2] for name in CRD_NAMES]
        groups = [{"name": name, "versions": [{"groupVersion": f"{name}/v1"}]} for name in names]
        return {"groups": groups} if path == "/apis" else {"resources": []}

    def list(self, path: str, *more: object, **query: str) -> list[Any]:
        if path == FIRST["crds"].path:
            return [{"metadata": {"name": name}} for name in CRD_NAMES]
        if path.endswith("monitoring/secrets"):
            return [REVISION]
        self.get(path)
        return []


ASKS = {"one": ApiRequest("/one", many=False), "many": ApiRequest("/many")}
OPTIONAL = {name: ApiRequest(ask.path, many=ask.many, optional=True) for name, ask in ASKS.items()}
FOREIGN = {name: ApiRequest(ask.path, many=ask.many, foreign=True) for name, ask in ASKS.items()}


DISPENSABLE = {
    name: ApiRequest(ask.path, many=ask.many, optional=True, dispensable=True)
    for name, ask in ASKS.items()
}


@pytest.mark.parametrize(
    ("asks", "status"), [(OPTIONAL, 404), (FOREIGN, 503), (DISPENSABLE, 403), (DISPENSABLE, 404)]
)
def test_optional_requests_may_be_missing_and_foreign_ones_unavailable(
    asks: dict[str, ApiRequest], status: int
) -> None:
    assert ask_all(Refusing(status), asks) == {"one": {}, "many": []}  # type: ignore[arg-type]


def test_a_404_of_a_foreign_aggregated_api_is_its_own() -> None:
    """A foreign API may answer 404 with any text. From other APIs such a text is an error."""
    foreign = {name: ApiRequest(ask.path, many=ask.many, optional=True, foreign=True)
               for name, ask in ASKS.items()}  # fmt: skip
    other = Refusing(404, "<h1>Not Found</h1>")
    assert ask_all(other, foreign) == {"one": {}, "many": []}  # type: ignore[arg-type]
    with pytest.raises(ClusterProblem):
        ask_all(other, OPTIONAL)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asks", "status"),
    [
        (OPTIONAL, 500),
        (OPTIONAL, 503),
        (OPTIONAL, 403),
        (FOREIGN, 404),
        (ASKS, 404),
        (ASKS, 503),
        (DISPENSABLE, 500),
    ],
)
def test_every_other_rejection_is_reported(asks: dict[str, ApiRequest], status: int) -> None:
    with pytest.raises(ClusterProblem) as caught:
        ask_all(Refusing(status), asks)  # type: ignore[arg-type]
    codes = [found.code for found in caught.value.findings]
    assert codes == (["GF866"] if status == 403 else ["GF869", "GF869"])


class WithProxy(Partly):
    """A cluster whose kube-proxy has its configuration in a ConfigMap."""

    def get(self, path: str, *more: object, **query: str) -> dict[str, Any]:
        if path.endswith("kube-system/configmaps/kube-proxy"):
            return {"data": {"config": "kind: KubeProxyConfiguration\nmetricsBindAddress: 0.0.0.0"}}
        return super().get(path, *more, **query)

    def list(self, path: str, *more: object, **query: str) -> list[Any]:
        if path != FIRST["pods"].path:
            return super().list(path, *more, **query)
        container = {"command": ["kube-proxy", "--config=/x"]}
        volume = {"name": "x", "configMap": {"name": "kube-proxy"}}
        metadata = {"namespace": "kube-system", "labels": {"k8s-app": "kube-proxy"}, "name": "p"}
        return [{"metadata": metadata, "spec": {"containers": [container], "volumes": [volume]}}]


def test_the_configuration_of_kube_proxy_is_read_with_its_pods() -> None:
    answers = gather_answers(WithProxy(""), {}, ())  # type: ignore[arg-type]
    [kind] = parse_system_pods(answers["pods"], answers["system_configs"])
    assert kind.config["metricsBindAddress"] == "0.0.0.0"
    assert kind.argument("config") == "/x"


@pytest.mark.parametrize(
    "path",
    [
        "/apis/monitoring.coreos.com/v1",  # its Prometheus would be installed a second time
        "/apis/monitoring.coreos.com/v1/prometheuses",
        "/api/v1/namespaces/monitoring/secrets/sh.helm.release.v1.stack.v1",  # so would a release
    ],
)
def test_a_cluster_of_which_a_part_does_not_answer_is_not_one_without_it(path: str) -> None:
    with pytest.raises(ClusterProblem):
        gather_answers(Partly(path), {}, [STACK])  # type: ignore[arg-type]


def test_an_api_of_others_that_is_down_does_not_stop_a_run() -> None:
    answers = gather_answers(Partly("/apis/example.com/v1"), {}, [STACK])  # type: ignore[arg-type]
    assert answers["resources"] == {
        "monitoring.coreos.com/v1": {"resources": []},
        "example.com/v1": {},
    }
