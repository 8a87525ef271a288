"""Errors of an API server or a proxy are quoted in a few words, without registered secrets."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3

from gpufleet.core.secrets import register_secret
from gpufleet.kube.kubeconfig import Kubeconfig
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.objects import write_object
from gpufleet.kube.operations.refused import ApiError
from gpufleet.verify.cluster import CheckedCluster
from gpufleet.verify.inventory import Target

SECRETS = "Authorization: Bearer eyJhbGciOi1hunter2\nGET https://bob:hunter2@host/?token=hunter2 "
LONG = SECRETS + "and so on, " * 90_000
CONFIG = {
    "current-context": "c",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    "users": [{"name": "c", "user": {"token": "of-the-test"}}],
}


@pytest.fixture(autouse=True)
def _secret() -> None:
    register_secret("hunter2")


def refused(monkeypatch: pytest.MonkeyPatch, status: int, body: bytes) -> ClusterProblem:
    api = ClusterApi(Kubeconfig("c", CONFIG))
    answer = SimpleNamespace(status=status, data=body, headers={})
    monkeypatch.setattr(api, "_sent", lambda *_: answer)
    with pytest.raises(ClusterProblem) as caught:
        api.attempt("/api/v1/pods", {})
    return caught.value


@pytest.mark.parametrize("status", [403, 409, 422, 500])
@pytest.mark.parametrize("as_json", [True, False])
def test_a_refusal(status: int, as_json: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    answer: dict[str, Any] = {
        "message": LONG,
        "reason": LONG,
        "details": {"causes": [{"message": LONG}] * 12},
    }
    body = json.dumps(answer) if as_json else LONG
    error = refused(monkeypatch, status, body.encode())
    assert isinstance(error, ApiError)
    (found,) = error.findings
    for text in (str(found), str(error), error.message, error.reason, *error.causes):
        assert "hunter2" not in text
        assert len(text) < 1500
    assert len(error.causes) <= 10
    assert "https://bob:***@host" in error.message


def test_missing_permissions_are_named_whoever_lacks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    user = "system:serviceaccount:external-secrets:gpufleet2"
    message = f'nodes is forbidden: User "{user}" cannot list resource "nodes" in API group ""'
    error = refused(monkeypatch, 403, json.dumps({"message": message}).encode())
    assert "list nodes anywhere" in error.findings[0].message
    assert "can-i list nodes" in str(error.findings[0])


CANNOT = 'cannot {} resource "{}" in API group ""'


def test_missing_permissions_are_kubernetes_names_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [
        CANNOT.format("$(reboot)", "x"),
        CANNOT.format("get", "https://bob:hunter2@host token=hunter2"),
        CANNOT.format("get", "a`reboot`"),
    ]
    for message in said:
        (found,) = refused(monkeypatch, 403, json.dumps({"message": message}).encode()).findings
        assert "hunter2" not in str(found)
        assert "can-i --list" in found.remedy
    many = ", ".join(CANNOT.format("get", f"r{number}") for number in range(2000))
    (found,) = refused(monkeypatch, 403, json.dumps({"message": many}).encode()).findings
    assert len(found.message) < 1500
    assert "get r0 anywhere" in found.message
    assert re.search(r"and \d{3,4} more\.", found.message)


SENTENCES = [
    'failed calling webhook "pod-auth-policy.example.com": failed to call webhook: timed out',
    "require-image-pull-secrets: check: validation error: images must come from r.example.com",
    "spec.volumes[0].secret.secretName: Required value",
    "Unauthenticated: the certificate has expired",
]


@pytest.mark.parametrize("message", SENTENCES)
def test_a_sentence_of_a_webhook_is_shown(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    error = refused(monkeypatch, 500, json.dumps({"message": message}).encode())
    assert message in error.findings[0].message


def test_a_server_that_is_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    api = ClusterApi(Kubeconfig("c", CONFIG))

    def fail(*_: Any, **__: Any) -> None:
        raise urllib3.exceptions.ProtocolError(LONG)

    monkeypatch.setattr(api._client.rest_client, "request", fail)
    with pytest.raises(ClusterProblem) as caught:
        api.get("/api")
    (found,) = caught.value.findings
    assert "hunter2" not in str(found)
    assert len(found.message) < 1200


def test_a_write_that_is_refused() -> None:
    def call() -> None:
        raise ApiError("POST /x", 422, {"message": LONG}, "c")

    command = write_object("create x", call)
    with pytest.raises(ClusterProblem) as caught:
        command.function(None, None, *command.args)
    (found,) = caught.value.findings
    assert "hunter2" not in str(found)
    assert len(found.message) < 1200


@pytest.mark.parametrize("body", [LONG, "x" * 195 + " token=hunter2hunter2"])
def test_an_answer_to_a_check(body: str) -> None:
    cluster = CheckedCluster(Target("@local", ("gpu_cluster",), {}))
    answer = SimpleNamespace(status=502, read=body.encode)
    cluster.__dict__["api"] = SimpleNamespace(
        update_params_for_auth=lambda *_: None,
        configuration=SimpleNamespace(host=""),
        rest_client=SimpleNamespace(request=lambda *_, **__: answer),
    )
    said = cluster.get("/x")
    assert isinstance(said, str)
    assert said.startswith("502 ")
    assert "hunter" not in said
    assert len(said) < 210
    for failed in (cluster.silent(LONG), cluster.gone(LONG), cluster.gone(OSError(LONG))):
        assert "hunter2" not in str(failed)
        assert len(str(failed)) < 1500


STATUS = {"kind": "Status", "reason": "NotFound", "message": "it is not there"}


@pytest.mark.parametrize(
    ("answer", "is_missing"),
    [
        (b"", True),
        (b"404 page not found\n", True),
        (json.dumps(STATUS).encode(), True),
        (b"{}", False),
        (b'{"error": "Not Found"}', False),
        (b'{"code": 404, "detail": "no route"}', False),
        (b"default backend - 404", False),
    ],
)
def test_a_404_about_a_kind(
    answer: bytes, is_missing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either the API server does not serve the kind, or a proxy has no route to it."""
    api = ClusterApi(Kubeconfig("c", CONFIG))
    said = SimpleNamespace(status=404, data=answer, headers={})
    monkeypatch.setattr(api, "_sent", lambda *_: said)
    with pytest.raises(ApiError) as caught:
        api.get("/apis/nvidia.com/v1/clusterpolicies")
    assert caught.value.is_missing == is_missing
