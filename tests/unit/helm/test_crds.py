"""CRDs that are written before their chart, and when a server uses them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpufleet.helm.chart import ChartContent
from gpufleet.helm.crds import is_published, plan_crds
from gpufleet.helm.release import ChartSource, Release
from gpufleet.helm.strategy import helm_catalog
from gpufleet.kube.facts import ClusterFacts, Crd, ReleaseRef, ServerVersion
from gpufleet.kube.objects import MANAGED_BY_LABELS

NOTE = "example.com/version"
NAME = "things.example.com"
RELEASE = Release("one", "n", "tiny", "1.0.0", ChartSource("archive", "/t"), crd_version=NOTE)


def manifest(version: str = "", **properties: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, "annotations": {NOTE: version} if version else {}},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def planned(
    chart: dict[str, Any],
    live: dict[str, Any] | None,
    minor: int = 36,
    owner: ReleaseRef | None = None,
) -> tuple[list[tuple[str, str]], list[str]]:
    """(action, method) of the steps, and the codes of the findings."""
    crds = {}
    if live:
        crds[NAME] = Crd(NAME, "Thing", ("v1",), live["metadata"]["annotations"], owner)
    steps, kept = plan_crds(
        RELEASE,
        ChartContent("tiny", "1.0.0", "", {}, (chart, chart)),
        ClusterFacts("c", ServerVersion(1, minor), crds=crds),
        {NAME: live} if live else {},
        helm_catalog(),
    )
    return [(step.action, step.method) for step in steps], [found.code for found in kept]


SIZE = {"size": {"type": "integer"}}
BOTH = {**SIZE, "extra": {"type": "string"}}


@pytest.mark.parametrize(
    ("chart", "live", "steps", "codes"),
    [
        (manifest("0.9"), None, [("create", "apply")], []),
        (manifest("0.9"), manifest("0.9"), [], []),
        (manifest("0.10"), manifest("0.9"), [("update", "apply")], []),
        (manifest("v0.10.0"), manifest("0.10.0"), [], []),
        (manifest("0.9"), manifest("0.10"), [], ["GF837"]),
        (manifest("0.9"), manifest(), [("update", "apply")], []),
        (manifest(), manifest("0.9", **SIZE), [("update", "apply")], []),
        (manifest(**SIZE), manifest(**SIZE), [], []),
        (manifest(**BOTH), manifest(**SIZE), [("update", "apply")], []),
    ],
)
def test_what_is_done_about_a_crd(
    chart: dict[str, Any],
    live: dict[str, Any] | None,
    steps: list[tuple[str, str]],
    codes: list[str],
) -> None:
    assert planned(chart, live) == (steps, codes)


def test_an_old_server_gets_them_whole() -> None:
    assert planned(manifest("1"), None, minor=18)[0] == [("create", "replace")]
    assert planned(manifest("1"), manifest("0"), minor=18)[0] == [("update", "replace")]
    assert planned(manifest("1"), manifest("0"), minor=19)[0] == [("update", "apply")]


def test_crds_that_stay_for_one_reason_are_one_finding() -> None:
    chart = [manifest("1"), manifest("1")]
    names = ["a.example.com", "b.example.com"]
    for one, name in zip(chart, names, strict=True):
        one["metadata"]["name"] = name
    crds = {name: Crd(name, "Thing", ("v1",), {NOTE: "2"}) for name in names}
    facts = ClusterFacts("c", ServerVersion(1, 36), crds=crds)
    content = ChartContent("tiny", "1.0.0", "", {}, tuple(chart))
    _, (found,) = plan_crds(RELEASE, content, facts, {}, helm_catalog())
    assert "2 CRDs stay" in found.message
    assert ", ".join(names) in found.message


def test_a_crd_of_another_release_is_left_alone() -> None:
    theirs = ReleaseRef("other", "operator")
    assert planned(manifest("2"), manifest("1"), owner=theirs) == ([], ["GF837"])
    assert planned(manifest("2"), manifest("1"), owner=RELEASE.ref)[0] == [("update", "apply")]


KIND = [{"group": "example.com", "version": "v1", "kind": "Thing"}]


def described(**properties: Any) -> dict[str, Any]:
    return {"com.example.v1.Thing": {"x-kubernetes-group-version-kind": KIND,
                                     "properties": properties}}  # fmt: skip


def nested(**properties: Any) -> dict[str, Any]:
    return {"spec": {"type": "object", "properties": properties}}


@pytest.mark.parametrize(
    ("definitions", "properties", "known"),
    [
        (None, SIZE, False),
        ({}, SIZE, False),
        (described(**SIZE), SIZE, True),
        (described(**SIZE, kind={}, metadata={}), SIZE, True),
        (described(**SIZE), BOTH, False),
        (described(**nested(**SIZE)), nested(**BOTH), False),
        (described(**nested(**BOTH)), nested(**BOTH), True),
        (described(spec={"type": "object"}), nested(**BOTH), True),  # without its properties
        (described(list={"items": {"properties": SIZE}}), {"list": {"items": {"properties": BOTH}}},
         False),
        (described(list={"items": {"properties": BOTH}}), {"list": {"items": {"properties": BOTH}}},
         True),
    ],
)  # fmt: skip
def test_whether_a_server_uses_a_schema(
    definitions: Any, properties: dict[str, Any], known: bool
) -> None:
    version = manifest(**json.loads(json.dumps(properties)))["spec"]["versions"][0]
    assert is_published(definitions, "example.com", "Thing", version) is known


def labels(live: dict[str, Any] | None) -> dict[str, str]:
    """The labels of the CRD that gpufleet writes; `live`: the CRD in the cluster."""
    chart = manifest("0.10")
    chart["metadata"]["labels"] = {"own": "label"}
    known = {NAME: Crd(NAME, "Thing", ("v1",), {NOTE: "0.9"})} if live else {}
    facts = ClusterFacts("c", ServerVersion(1, 36), crds=known)
    content = ChartContent("tiny", "1.0.0", "", {}, (chart,))
    (step,), _ = plan_crds(RELEASE, content, facts, {NAME: live} if live else {}, helm_catalog())
    found: dict[str, str] = step.manifest["metadata"]["labels"]
    return found


def test_a_crd_that_gpufleet_creates_is_labelled_and_stays_so() -> None:
    ours = manifest("0.9")
    ours["metadata"]["labels"] = MANAGED_BY_LABELS
    assert labels(None) == labels(ours) == {"own": "label", **MANAGED_BY_LABELS}
    assert labels(manifest("0.9")) == {"own": "label"}  # another user's
