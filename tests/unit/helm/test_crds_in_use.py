"""A written CRD is in use once the server describes every version that it serves."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gpufleet.helm.operations.crds import _in_use
from gpufleet.helm.release import CrdStep
from gpufleet.kube.facts import ServerVersion
from gpufleet.kube.operations.api import ClusterApi

NEW = {"openAPIV3Schema": {"properties": {"size": {"type": "integer"}}}}
VERSIONS = [
    {"name": "v1", "served": True, "schema": NEW},
    {"name": "v1alpha1", "served": False, "schema": NEW},
]
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "metadata": {"name": "things.a.example"},
    "spec": {"group": "a.example", "names": {"kind": "Thing"}, "versions": VERSIONS},
}
STEP = CrdStep("things.a.example", "create", "apply", "", "1.0.0", CRD)


def described(version: str, *fields: str) -> dict[str, Any]:
    kind = {"group": "a.example", "version": version, "kind": "Thing"}
    properties = {name: {"type": "integer"} for name in fields}
    return {"x-kubernetes-group-version-kind": [kind], "properties": properties}


class Api:
    """A server that has the CRD, established or not, and describes kinds by version."""

    def __init__(self, established: str, **kinds: dict[str, Any]) -> None:
        self.established, self.kinds = established, kinds

    def get(self, path: str) -> dict[str, Any]:
        if path == "/openapi/v2":
            return {"definitions": self.kinds}
        assert path.endswith("/customresourcedefinitions/things.a.example")
        condition = {"type": "Established", "status": self.established}
        return {**CRD, "status": {"conditions": [condition]}}

    def find(self, path: str) -> dict[str, Any] | None:
        version = path.removeprefix("/openapi/v3/apis/a.example/")
        found = self.kinds.get(version)
        return {"components": {"schemas": {"t": found}}} if found else None


@pytest.mark.parametrize("server", [ServerVersion(1, 18), ServerVersion(1, 36)])
@pytest.mark.parametrize(
    ("api", "used"),
    [
        (
            Api("True", v1=described("v1", "size")),
            True,
        ),  # v1alpha1 is not served: described nowhere
        (Api("False", v1=described("v1", "size")), False),
        (Api("True", v1=described("v1")), False),  # still the schema from before
        (Api("True", v1alpha1=described("v1alpha1", "size")), False),
        (Api("True"), False),
    ],
)
def test_every_served_version_has_its_new_schema(
    server: ServerVersion, api: Api, used: bool
) -> None:
    assert _in_use(cast(ClusterApi, api), STEP, server) is used
