"""What a removal reads of a cluster, with a fake API."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.gpu_stack.operations.removal_facts import (
    CRDS,
    contents,
    gather_remains,
    namespaced,
)
from gpufleet.gpu_stack.remains import Remains
from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.helm.release import OWNER_LABEL
from gpufleet.kube.facts import Crd, ObjectRef, ReleaseRef
from gpufleet.kube.objects import OURS
from gpufleet.kube.operations.api import ApiError
from tests.unit.gpu_stack.gpu_clusters import CATALOG, FACTS

RULES = "prometheusrules.monitoring.coreos.com"
RULE_LIST = "/apis/monitoring.coreos.com/v1/prometheusrules"
SPACE = "/api/v1/namespaces/monitoring"


class Api:
    """Responds by path; 404 for another one of a custom resource, an empty list for the rest."""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = answers
        self.asked: dict[str, dict[str, str]] = {}

    def list(self, path: str, *more: object, **query: str) -> list[Any]:
        self.asked[path] = query
        if path not in self.answers and path.startswith("/apis/monitoring"):
            raise ApiError(f"GET {path}", 404, {}, "test")
        found: list[Any] = self.answers.get(path, [])
        return found

    def get(self, path: str, *more: object, **query: str) -> Any:
        if path not in self.answers:
            raise ApiError(f"GET {path}", 503, {}, "test")
        return self.answers[path]


def item(name: str, space: str = "", **about: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **({"namespace": space} if space else {}), **about}}


def gathered(facts: Any = FACTS, **answers: Any) -> tuple[Remains, Api]:
    settings, _ = load_cluster_settings({})
    assert settings
    api = Api(**answers)
    return gather_remains(api, facts, settings, CATALOG), api  # type: ignore[arg-type]


def test_a_bare_cluster_has_nothing_of_gpufleet() -> None:
    assert gathered()[0] == Remains()


def test_objects_with_the_label_are_found_in_their_namespaces() -> None:
    secrets = [item("gpufleet-grafana", "monitoring"), item("x", "monitoring", labels=OURS)]
    found, _ = gathered(
        **{
            f"{SPACE}/secrets": secrets,
            f"{SPACE}/configmaps": [item("map", "monitoring", labels=OURS)],
            "/api/v1/namespaces": [item("monitoring", labels=OURS), item("default")],
        }
    )
    assert {one.path for one in found.objects} == {
        f"{SPACE}/secrets/x",
        f"{SPACE}/configmaps/map",
    }
    assert [str(ref) for ref in found.unmarked] == ["Secret monitoring/gpufleet-grafana"]
    assert [one.path for one in found.namespaces] == [SPACE]


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_runtime_classes_are_read_in_the_version_that_is_served(version: str) -> None:
    facts = replace(FACTS, apis=frozenset({f"node.k8s.io/{version}"}))
    path = f"/apis/node.k8s.io/{version}/runtimeclasses"
    found, _ = gathered(facts, **{path: [item("nvidia", labels=OURS)]})
    assert [one.path for one in found.objects] == [f"{path}/nvidia"]


def test_crds_have_the_objects_of_others() -> None:
    facts = replace(FACTS, crds={RULES: Crd(RULES, "PrometheusRule", ("v1",), {})})
    found, _ = gathered(
        facts,
        **{
            CRDS: [
                item(RULES, labels=OURS),
                item("late.nvidia.com", labels=OURS),  # is not served yet
                item("things.example.com"),
            ],
            RULE_LIST: [item("theirs", "team"), item("ours", "monitoring", labels=OURS)],
        },
    )
    rules, late = found.crds
    assert (rules.ours, rules.objects) == (True, RULE_LIST)
    assert rules.users == (ObjectRef("PrometheusRule", "team", "theirs"),)
    assert (late.objects, late.users) == ("", ())


def test_releases_in_other_namespaces_are_found_by_their_label() -> None:
    def secret(space: str) -> Any:
        labels = {"owner": "helm", "name": "dcgm-exporter", "version": "1"}
        return item("sh.helm.release.v1.dcgm-exporter.v1", space, labels=labels)

    found, api = gathered(**{"/api/v1/secrets": [secret("monitoring"), secret("other")]})
    assert found.elsewhere == (ReleaseRef("other", "dcgm-exporter"),)
    assert api.asked["/api/v1/secrets"]["labelSelector"] == f"owner=helm,{OWNER_LABEL}"


VERBS = ["list", "delete"]
DISCOVERY = {
    "/apis": {
        "groups": [
            {"preferredVersion": {"groupVersion": name}}
            for name in ("apps/v1", "metrics.k8s.io/v1", "broken.example/v1")
        ]
    },
    "/api/v1": {
        "resources": [
            {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": VERBS},
            {"name": "pods/log", "kind": "Pod", "namespaced": True, "verbs": VERBS},
            {"name": "bindings", "kind": "Binding", "namespaced": True, "verbs": ["create"]},
            {"name": "nodes", "kind": "Node", "namespaced": False, "verbs": VERBS},
        ]
    },
    "/apis/apps/v1": {
        "resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True,
                       "verbs": VERBS}]
    },
    "/apis/metrics.k8s.io/v1": {
        "resources": [{"name": "pods", "kind": "PodMetrics", "namespaced": True, "verbs": ["list"]}]
    },
}  # fmt: skip


def test_kinds_that_a_namespace_stores_are_discovered() -> None:
    kinds, silent = namespaced(Api(**DISCOVERY))  # type: ignore[arg-type]
    assert kinds == {"/api/v1/{}pods": "Pod", "/apis/apps/v1/{}deployments": "Deployment"}
    assert silent == ["broken.example/v1"]


def test_the_content_of_a_namespace_is_listed() -> None:
    path = "/apis/apps/v1/namespaces/monitoring/deployments"
    api = Api(**{path: [item("web", "monitoring")]})
    kinds = {"/api/v1/{}pods": "Pod", "/apis/apps/v1/{}deployments": "Deployment"}
    found = contents(api, "monitoring", kinds)  # type: ignore[arg-type]
    assert list(found) == [ObjectRef("Deployment", "monitoring", "web")]
