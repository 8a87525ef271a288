"""CRDs are written. They are ready once the server describes every version that it serves."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpufleet.helm.operations import crds
from gpufleet.helm.operations.crds import LOOK_EVERY, _in_use, write_crds
from gpufleet.helm.release import ChartSource, CrdStep, Release
from gpufleet.kube.facts import ServerVersion
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError

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
        self.written: list[tuple[str, str]] = []
        self.refusal: ApiError | None = None

    def get(self, path: str) -> dict[str, Any]:
        if path == "/openapi/v2":
            return {"definitions": self.kinds}
        assert path.endswith("/customresourcedefinitions/things.a.example")
        condition = {"type": "Established", "status": self.established}
        return {**CRD, "status": {"conditions": [condition]}}

    def apply(self, path: str, body: Any) -> None:
        self._write("apply", path)

    def create(self, path: str, body: Any) -> None:
        self._write("create", path)

    def replace(self, path: str, body: Any) -> None:
        assert body["metadata"]["labels"] == {"ours": "1"}
        self._write("replace", path)

    def _write(self, verb: str, path: str) -> None:
        if self.refusal:
            raise self.refusal
        self.written.append((verb, path))

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


RELEASE = Release("one", "space", "chart", "2.0.0", ChartSource("archive", "x"))
PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REPLACED = {**CRD, "metadata": {"name": "things.a.example", "labels": {"ours": "1"}}}


def write(api: Api, step: CrdStep, said: list[str] | None = None) -> str:
    """The message of the finding, or an empty text without a finding."""
    say = [] if said is None else said
    server = ServerVersion(1, 36)
    found = write_crds(cast(ClusterApi, api), [step], RELEASE, server, say.append)
    return found.message if found else ""


@pytest.mark.parametrize(
    ("step", "written", "said"),
    [
        (STEP, ("apply", f"{PATH}/things.a.example"), "unknown -> 1.0.0"),
        (replace(STEP, method="replace"), ("create", PATH), "unknown -> 1.0.0"),
        (
            CrdStep("things.a.example", "update", "replace", "0.9.0", "1.0.0", REPLACED),
            ("replace", f"{PATH}/things.a.example"),
            "0.9.0 -> 1.0.0",
        ),
        (replace(STEP, after=""), ("apply", f"{PATH}/things.a.example"), "create"),
    ],
)
def test_a_crd_is_written_once(step: CrdStep, written: tuple[str, str], said: str) -> None:
    api, lines = Api("True", v1=described("v1", "size")), list[str]()
    assert write(api, step, lines) == ""
    assert api.written == [written]
    assert lines == [f"CRD things.a.example: {said}"]


def test_a_crd_that_is_refused_or_not_used_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api("True", v1=described("v1", "size"))
    api.refusal = ApiError("PATCH x", 422, {"message": "it is wrong"}, "test")
    assert write(api, STEP).endswith("it is wrong; the release was not changed.")
    pauses: list[float] = []
    clock = SimpleNamespace(monotonic=count(0, 0.01).__next__, sleep=pauses.append)
    monkeypatch.setattr(crds, "time", clock)
    monkeypatch.setattr(crds, "PUBLISHED_IN", 1)
    assert write(Api("False"), STEP).endswith("after 1 s; the release was not changed.")
    assert set(pauses) == {LOOK_EVERY}
