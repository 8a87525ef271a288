"""404s in the checks: from the API server, and from a proxy or load balancer in front of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from gpufleet.verify import releases
from gpufleet.verify.autoscaling import gpu_autoscalers
from gpufleet.verify.checks import CheckFailed
from gpufleet.verify.cluster import MONITORS, CheckedCluster
from gpufleet.verify.inventory import Target
from tests.not_found import not_found
from tests.post_deploy import test_cluster as checks

JOB = not_found("/apis/batch/v1/namespaces/default/jobs/j")
UNKNOWN = "the server could not find the requested resource"  # client-go, of any other 404
UNSERVED = [
    b'{"kind": "Status", "reason": "NotFound", "message": "nodes \\"a\\" not found"}',
    json.dumps({"message": UNKNOWN}),
    UNKNOWN,
    "404 page not found\n",
    "",
    None,
]
OTHERS = [b"default backend - 404", "<html>404</html>", "[]", '{"error": "no route"}', b"\xff"]
CAUSE = {"causes": [{"reason": "UnexpectedServerResponse", "message": "404 page not found"}]}
FOREIGN = {"causes": [{"reason": "UnexpectedServerResponse", "message": "<html>404</html>"}]}
UNSERVED.append(json.dumps({"reason": "NotFound", "message": UNKNOWN, "details": CAUSE}))
OTHERS.append(json.dumps({"reason": "NotFound", "message": UNKNOWN, "details": FOREIGN}))
Body = bytes | str | None


def refusing(body: Body, status: int = 404) -> CheckedCluster:
    """A cluster whose API refuses everything."""

    def refused(*how: Any, **more: Any) -> Any:
        error = ApiException(status=status, reason="Not Found")
        error.body = body
        raise error

    cluster = CheckedCluster(Target("@local", ("gpu_cluster",), {}))
    cluster.__dict__["api"] = api = client.ApiClient(client.Configuration())
    api.rest_client.request = refused
    return cluster


ASKED: dict[
    str, Callable[[CheckedCluster], Any]
] = {  # queries of objects that every API server has
    "nodes": lambda cluster: cluster.nodes,
    "GPU nodes": lambda cluster: cluster.gpu_nodes,
    "pods": lambda cluster: cluster.pods,
    "services": lambda cluster: cluster.query_path,
    "secrets": lambda cluster: releases.deployed_release(cluster, "gpu-operator"),
    "reachable": checks.test_reachable,
    "plugin": checks.test_plugin_on_every_gpu_node,
    "exporter": checks.test_exporter_on_every_gpu_node,
}


@pytest.mark.parametrize("body", [*UNSERVED, *OTHERS])
@pytest.mark.parametrize("what", ASKED)
def test_a_404_is_no_empty_list(what: str, body: Body) -> None:
    with pytest.raises(CheckFailed) as caught:
        ASKED[what](refusing(body))
    assert (caught.value.finding.code, "404 Not Found" in str(caught.value)) == ("GF790", True)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (403, 'jobs.batch is forbidden: User "ci" cannot create resource "jobs"'),
        (400, 'admission webhook "validate.kyverno.svc-fail" denied the request: require-limits'),
    ],
)
def test_a_refusal_is_shown_in_the_servers_words(status: int, message: str) -> None:
    """egovernments/DIGIT-DevOps#4919: a policy refuses pods without limits, also the check's."""
    cluster = refusing(json.dumps({"kind": "Status", "message": message}), status)
    with pytest.raises(CheckFailed) as caught:
        cluster.ask(cluster.batch.create_namespaced_job, "default", {})
    assert message in str(caught.value)


def test_a_job_without_a_pod_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    said = 'Error creating: admission webhook "validation.gatekeeper.sh" denied the request'
    event = SimpleNamespace(
        type="Warning", message=said, involved_object=SimpleNamespace(name="gpufleet-verify-x7k2p")
    )
    cluster = refusing("")
    core = SimpleNamespace(list_namespaced_event=None)
    cluster.__dict__.update(core=core, listed=lambda *_: [event])
    monkeypatch.setattr(checks, "POD_SECONDS", 0)
    found = checks._ended(cluster, "gpufleet-verify-x7k2p")
    with pytest.raises(CheckFailed) as caught:
        checks.test_a_pod_with_a_gpu_finishes(cluster, found)
    assert (caught.value.finding.code, f"no pod; {said}" in str(caught.value)) == ("GF795", True)


@pytest.mark.parametrize("body", UNSERVED)
def test_autoscalers_of_a_version_that_is_served(
    body: Body, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = SimpleNamespace(versions=[SimpleNamespace(version="v2")])
    monkeypatch.setattr(client.AutoscalingApi, "get_api_group", lambda api, **how: group)
    cluster = refusing(body)
    with pytest.raises(CheckFailed, match="GF790"):
        gpu_autoscalers(cluster)


@pytest.mark.parametrize(
    ("status", "body"), [(404, UNKNOWN), (404, "default backend - 404"), (403, ""), (502, "")]
)
def test_the_target_of_an_autoscaler_that_is_not_shown_may_have_gpus(
    status: int, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the target were left out, no check would report the autoscaler."""
    cluster = with_autoscaler(monkeypatch, "Deployment", status, body)
    with pytest.raises(CheckFailed, match=str(status)):
        gpu_autoscalers(cluster)


@pytest.mark.parametrize("kind", ["Deployment", "Rack"])
def test_an_autoscaler_without_a_target_scales_no_gpu(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = json.dumps(not_found("/apis/apps/v1/namespaces/ml/deployments/server"))
    assert gpu_autoscalers(with_autoscaler(monkeypatch, kind, 404, gone)) == []


def with_autoscaler(
    monkeypatch: pytest.MonkeyPatch, kind: str, status: int, body: str
) -> CheckedCluster:
    """A cluster with one autoscaler, and its API's answer about the target."""
    scaler = {
        "metadata": {"namespace": "ml", "name": "server"},
        "spec": {"scaleTargetRef": {"kind": kind, "name": "server"}},
    }
    group = SimpleNamespace(versions=[SimpleNamespace(version="v2")])
    monkeypatch.setattr(client.AutoscalingApi, "get_api_group", lambda api, **how: group)
    listed = {"items": [scaler]}
    name = "list_cluster_custom_object"
    monkeypatch.setattr(client.CustomObjectsApi, name, lambda *how, **more: listed)
    return refusing(body, status)


@pytest.mark.parametrize("body", UNSERVED)
def test_a_kind_that_is_not_served_has_no_objects(body: Body) -> None:
    assert refusing(body).custom(MONITORS) == []


@pytest.mark.parametrize("body", OTHERS)
def test_another_program_does_not_know_which_kinds_are_served(body: Body) -> None:
    with pytest.raises(CheckFailed):
        refusing(body).custom(MONITORS)


def test_an_object_is_gone_where_the_server_names_it() -> None:
    cluster = refusing(json.dumps(JOB))
    assert cluster.find(cluster.batch.read_namespaced_job, "j", "default") is None


@pytest.mark.parametrize(
    "body",
    [*UNSERVED, *OTHERS, json.dumps({**JOB, "details": None}),
     json.dumps({**JOB, "details": {**JOB["details"], **CAUSE}}),
     json.dumps(not_found("/api/v1/namespaces/default"))],
)  # fmt: skip
def test_an_object_of_which_another_program_does_not_know_may_be_there(body: Body) -> None:
    cluster = refusing(body)
    with pytest.raises(CheckFailed):
        cluster.find(cluster.batch.read_namespaced_job, "j", "default")
