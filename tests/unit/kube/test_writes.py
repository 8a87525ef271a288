"""Writes to a cluster: all namespaces get the same labels, and a rejected write is a finding."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.kube.facts import ObjectRef
from gpufleet.kube.objects import MANAGED_BY_LABELS, ObjectChange
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.objects import (
    _apply,
    annotate_object,
    ensure_namespace,
    write_object,
)
from gpufleet.kube.operations.refused import ApiError
from tests.not_found import not_found

ENFORCE = "pod-security.kubernetes.io/enforce"


class Api:
    """Has no namespace at first. `status`, `reason`: of every response to a create."""

    def __init__(self, status: int = 0, reason: str = "") -> None:
        self.status, self.reason = status, reason
        self.made: list[dict[str, Any]] = []

    def create(self, path: str, body: dict[str, Any]) -> None:
        if self.status:
            raise ApiError(f"POST {path}", self.status, {"reason": self.reason}, "test")
        self.made.append(body)

    def apply(self, path: str, body: dict[str, Any]) -> None:
        if not self.made:
            answer = {"reason": "NotFound", "message": 'namespaces "space" not found'}
            raise ApiError(f"PATCH {path}", 404, answer, "test")


def test_every_namespace_allows_what_gpu_pods_need() -> None:
    api, other = Api(), Api()
    ensure_namespace(api, "space")  # type: ignore[arg-type]
    _apply(other, "space", "/x", ObjectChange("create", "x", {}))  # type: ignore[arg-type]
    assert api.made == other.made
    labels = {ENFORCE: "privileged", **MANAGED_BY_LABELS}
    assert [body["metadata"] for body in api.made] == [{"name": "space", "labels": labels}]


def test_an_existing_namespace_is_no_error_and_a_rejection_is_one() -> None:
    ensure_namespace(Api(409, "AlreadyExists"), "space")  # type: ignore[arg-type]
    with pytest.raises(ClusterProblem):
        ensure_namespace(Api(403, "Forbidden"), "space")  # type: ignore[arg-type]


CLAIM = ObjectRef("PersistentVolumeClaim", "space", "data")


def test_a_claim_and_a_crd_are_annotated_unless_they_are_gone() -> None:
    asked: list[tuple[str, Any]] = []

    class Objects:
        status = 0

        def merge(self, path: str, body: Any) -> None:
            asked.append((path.rpartition("/v1/")[2], body["metadata"]["annotations"]))
            if self.status:
                answer = not_found(path) if self.status == 404 else {"reason": "Forbidden"}
                raise ApiError(f"PATCH {path}", self.status, answer, "test")

    api: Any = Objects()
    for ref in (CLAIM, ObjectRef("CustomResourceDefinition", "", "things.x")):
        annotate_object(api, ref, {"keep": "yes"})
    assert asked == [
        ("namespaces/space/persistentvolumeclaims/data", {"keep": "yes"}),
        ("customresourcedefinitions/things.x", {"keep": "yes"}),
    ]
    api.status = 404
    annotate_object(api, CLAIM, {})
    api.status = 403
    with pytest.raises(ApiError):
        annotate_object(api, CLAIM, {})


@pytest.mark.parametrize(("secret", "shown"), [(False, True), (True, False)])
def test_a_rejected_write_names_the_action_and_quotes_no_secret(secret: bool, shown: bool) -> None:
    answer = {"reason": "Invalid", "message": "data[key]: hunter2secret is too long"}

    def rejected() -> None:
        raise ApiError("PUT /x", 422, answer, "test")

    command = write_object("write it", rejected, secret=secret)
    with pytest.raises(ClusterProblem) as caught:
        command.function(None, None, *command.args)
    (found,) = caught.value.findings
    assert (found.code, "Cannot write it: " in found.message) == ("GF880", True)
    assert ("hunter2secret" in found.message) is shown


def test_a_rejection_becomes_a_finding_of_its_cluster() -> None:
    error = ApiError("GET /x", 500, {"message": "etcd is gone"}, "test")
    assert isinstance(error, ClusterProblem)
    (found,) = error.findings
    assert "500 etcd is gone" in found.message
    assert str(error) == "GET /x: 500 etcd is gone"
