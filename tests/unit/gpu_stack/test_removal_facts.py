"""What a removal reads of a cluster, with a fake API."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.gpu_stack.operations.removal_facts import gather_remains
from gpufleet.gpu_stack.operations.removal_reads import CRDS
from gpufleet.gpu_stack.remains import LEFT, Remains
from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.helm.release import OWNER_LABEL
from gpufleet.kube.facts import Crd, HelmRelease, ObjectRef, ReleaseRef
from gpufleet.kube.objects import OURS
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import ApiError
from gpufleet.kube.parse import RELEASE_NAME, RELEASE_NAMESPACE
from tests.unit.gpu_stack.gpu_clusters import CATALOG, FACTS

RULES = "prometheusrules.monitoring.coreos.com"
RULE_LIST = "/apis/monitoring.coreos.com/v1/prometheusrules"
SPACE = "/api/v1/namespaces/monitoring"


DISCOVERY: dict[str, Any] = {
    "/apis": {"groups": []},
    "/api/v1": {
        "resources": [
            {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["list", "delete"]}
        ]
    },
}


class Api:
    """Responds by path; 404 for another one of a custom resource, an empty list for the rest. A
    number among the answers is a status."""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = answers
        self.asked: dict[str, dict[str, str]] = {}

    def list(self, path: str, *more: object, **query: str) -> list[Any]:
        self.asked[path] = query
        if path not in self.answers and path.startswith("/apis/monitoring"):
            raise ApiError(f"GET {path}", 404, {"message": "404 page not found"}, "test")
        found = self.answers.get(path, [])
        if isinstance(found, int):
            raise ApiError(f"GET {path}", found, {"message": "no healthy upstream"}, "test")
        return list(found)

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
        **DISCOVERY,
        **{
            f"{SPACE}/secrets": secrets,
            f"{SPACE}/configmaps": [item("map", "monitoring", labels=OURS)],
            "/api/v1/namespaces": [item("monitoring", labels=OURS), item("default")],
        },
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
                item("probes.monitoring.coreos.com"),  # of a chart, not of gpufleet
                item("things.example.com"),
            ],
            RULE_LIST: [item("theirs", "team"), item("ours", "monitoring", labels=OURS)],
        },
    )
    rules, late, probes = found.crds
    assert (rules.ours, rules.unknown) == (True, "")
    assert rules.users == (ObjectRef("PrometheusRule", "team", "theirs"),)
    assert (late.unknown, late.users) == ("the API does not serve it", ())
    assert not probes.ours


def test_crds_have_the_objects_of_releases_that_stay() -> None:
    record = HelmRelease(
        "gpu-operator", "gpu-operator", 1, "deployed", "gpu-operator", "1", "1", {}
    )
    crds = {RULES: Crd(RULES, "PrometheusRule", ("v1",), {})}
    facts = replace(FACTS, crds=crds, releases=(record,))
    of_release = {RELEASE_NAME: "gpu-operator", RELEASE_NAMESPACE: "gpu-operator"}
    owner = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "name": "cluster-policy"}
    objects = [
        item("templated", "gpu-operator", annotations=of_release),
        item("owned", "gpu-operator", ownerReferences=[owner]),
    ]
    answers = {CRDS: [item(RULES, labels=OURS)], RULE_LIST: objects}
    (rules,) = gathered(facts, **answers)[0].crds
    assert [ref.name for ref in rules.users] == ["templated", "owned"]
    ours = replace(facts, releases=(replace(record, labels={OWNER_LABEL: "1"}),))
    assert gathered(ours, **answers)[0].crds[0].users == ()


@pytest.mark.parametrize("status", [404, 500, 503])
def test_a_crd_whose_objects_are_not_listed_is_not_known_to_have_none(status: int) -> None:
    facts = replace(FACTS, crds={RULES: Crd(RULES, "PrometheusRule", ("v1",), {})})
    found, _ = gathered(facts, **{CRDS: [item(RULES, labels=OURS)], RULE_LIST: status})
    (rules,) = found.crds
    assert (rules.users, rules.unknown) == ((), f"{status} no healthy upstream")


def test_without_the_permission_to_list_objects_nothing_is_removed() -> None:
    facts = replace(FACTS, crds={RULES: Crd(RULES, "PrometheusRule", ("v1",), {})})
    with pytest.raises(ClusterProblem) as caught:
        gathered(facts, **{CRDS: [item(RULES, labels=OURS)], RULE_LIST: 403})
    assert [found.code for found in caught.value.findings] == ["GF866"]


@pytest.mark.parametrize("kind", ["secrets", "configmaps"])
def test_objects_of_gpufleet_that_are_not_listed_are_not_none(kind: str) -> None:
    with pytest.raises(ClusterProblem):
        gathered(**{f"{SPACE}/{kind}": 503})


def test_releases_in_other_namespaces_are_found_by_their_label() -> None:
    def secret(space: str) -> Any:
        labels = {"owner": "helm", "name": "dcgm-exporter", "version": "1"}
        return item("sh.helm.release.v1.dcgm-exporter.v1", space, labels=labels)

    found, api = gathered(**{"/api/v1/secrets": [secret("monitoring"), secret("other")]})
    assert found.elsewhere == (ReleaseRef("other", "dcgm-exporter"),)
    assert api.asked["/api/v1/secrets"]["labelSelector"] == f"owner=helm,{OWNER_LABEL}"


def test_what_a_release_leaves_behind_is_found_where_it_is() -> None:
    services = "/api/v1/namespaces/kube-system/services"
    name = "kube-prometheus-stack-kubelet"
    found, _ = gathered(**{services: [item(name, "kube-system"), item("dns", "kube-system")]})
    (left,) = found.left["kube-prometheus-stack"]
    assert (left.path, set(found.left)) == (f"{services}/{name}", {"kube-prometheus-stack"})
    assert found.objects == ()
    marked = item(name, "kube-system", labels=LEFT)  # by a removal that was killed
    assert [one.path for one in gathered(**{services: [marked]})[0].objects] == [left.path]


def test_a_namespace_without_a_release_is_looked_into() -> None:
    spaces = {"/api/v1/namespaces": [item("monitoring", labels=OURS)]}
    pods = {f"{SPACE}/pods": [item("web", "monitoring")]}
    found, _ = gathered(**DISCOVERY, **spaces, **pods)
    assert found.filled == {"monitoring": (ObjectRef("Pod", "monitoring", "web"),)}
    record = HelmRelease("x", "monitoring", 1, "deployed", "x", "1.0.0", "1", {})
    found, _ = gathered(replace(FACTS, releases=(record,)), **DISCOVERY, **spaces, **pods)
    assert found.filled == {}
