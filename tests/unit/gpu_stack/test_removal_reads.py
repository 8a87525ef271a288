"""CRDs and namespaces are deleted only where they are known to be empty, with an API in memory."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.gpu_stack.operations import removal, removal_deletes
from gpufleet.gpu_stack.operations.removal_deletes import ClusterRemoval
from gpufleet.gpu_stack.operations.removal_reads import API_SERVICES, CRDS
from gpufleet.gpu_stack.remains import ChartCrd, Leaving, Owned
from gpufleet.gpu_stack.removal import StackRemoval
from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.kube.facts import HelmRelease, ObjectRef, ReleaseRef
from gpufleet.kube.objects import OURS
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import ApiError
from tests.not_found import not_found

GROUP = "monitoring.coreos.com"
NAME = f"prometheusrules.{GROUP}"
RULES = f"/apis/{GROUP}/v1/prometheusrules"
CRD = f"{CRDS}/{NAME}"
SPACE = "/api/v1/namespaces/monitoring"
CONFIGS = f"/apis/{GROUP}/v1alpha1/namespaces/monitoring/scrapeconfigs"
VERBS = ["list", "delete"]
STACK = HelmRelease("stack", "monitoring", 1, "deployed", "stack", "1.0.0", "1", {})


def item(name: str, **about: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": "1", "resourceVersion": "7", **about}}


def resource(name: str, kind: str, *, namespaced: bool = True) -> dict[str, Any]:
    return {"name": name, "kind": kind, "namespaced": namespaced, "verbs": VERBS}


def crd(name: str = NAME, *, served: bool = True, **about: Any) -> dict[str, Any]:
    plural, _, group = name.partition(".")
    return {
        **item(name, labels=OURS, **about),
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "PrometheusRule"},
            "versions": [{"name": "v1", "served": served, "storage": True}],
        },
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }


def cluster() -> dict[str, Any]:
    """A namespace and a CRD of gpufleet's, both empty; the group has kinds of two versions."""
    both = [{"groupVersion": f"{GROUP}/{version}"} for version in ("v1", "v1alpha1")]
    rules, configs = resource("prometheusrules", "PrometheusRule"), "scrapeconfigs"
    return {
        SPACE: item("monitoring", labels=OURS),
        CRD: crd(),
        CRDS: [item(NAME), item(f"{configs}.{GROUP}")],
        API_SERVICES: [item("v1."), item(f"v1.{GROUP}"), item(f"v1alpha1.{GROUP}")],
        "/apis": {"groups": [{"name": GROUP, "versions": both, "preferredVersion": both[0]}]},
        "/api/v1": {"resources": [resource("configmaps", "ConfigMap")]},
        f"/apis/{GROUP}/v1": {"resources": [rules]},
        f"/apis/{GROUP}/v1alpha1": {"resources": [rules, resource(configs, "ScrapeConfig")]},
    }


class Api:
    """Responds by path: a number is a status. A list that is not there is empty."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {**cluster(), **answers}
        self.asked: list[str] = []
        self.deleted: dict[str, Any] = {}

    def get(self, path: str, *more: object, **query: str) -> Any:
        self.asked.append(path)
        found = self.answers.get(path)
        if found is None:
            raise ApiError(f"GET {path}", 404, not_found(path), "test")
        if isinstance(found, int):
            raise ApiError(f"GET {path}", found, {"message": "no healthy upstream"}, "test")
        return found

    def list(self, path: str, *more: object, **query: str) -> Any:
        self.answers.setdefault(path, [])
        return self.get(path)

    def find(self, path: str) -> Any:
        try:
            return None if path in self.deleted else self.get(path)
        except ApiError as error:
            if not error.is_missing:
                raise
            return None

    def delete(self, path: str, body: Any) -> None:
        self.deleted[path] = body


@pytest.fixture(autouse=True)
def executing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal_deletes, "state", SimpleNamespace(is_executing=True))
    monkeypatch.setattr(removal, "host", SimpleNamespace(noop=lambda why: None))


def opened(api: Api, *, templated: bool = False) -> ClusterRemoval:
    settings, _ = load_cluster_settings({})
    ours = ChartCrd(NAME, CRD, ours=True, release=STACK.ref if templated else None)
    plan = StackRemoval(
        crds=() if templated else (ours,),
        templated=(ours,) if templated else (),
        namespaces=(Owned(ObjectRef("Namespace", "", "monitoring"), SPACE),),
    )
    report = SimpleNamespace(findings=[], seen={})
    run: Any = SimpleNamespace(
        cluster=SimpleNamespace(api=api, uninstall=lambda *how: None),
        report=report,
        settings=settings,
    )
    return ClusterRemoval(run, plan, Leaving())


def carry_out(operation: Any, found: ClusterRemoval) -> None:
    """Every command of an operation, as pyinfra calls them."""
    commands: Callable[[ClusterRemoval], Any] = operation.__wrapped__
    for command in commands(found):
        command.function(None, None, *command.args)


def messages(found: ClusterRemoval) -> dict[str, str]:
    return {each.code: each.message for each in found.run.report.findings}


def test_what_is_empty_is_deleted_as_it_was_read() -> None:
    found = opened(api := Api())
    carry_out(removal.delete_crds, found)
    carry_out(removal.delete_namespaces, found)
    assert set(api.deleted) == {CRD, SPACE}
    assert api.deleted[SPACE]["preconditions"] == {"uid": "1", "resourceVersion": "7"}
    assert messages(found) == {}
    assert api.asked.index(CRD) < api.asked.index(RULES)  # else another one of its name would go
    assert api.asked.index(SPACE) < api.asked.index(CONFIGS)


@pytest.mark.parametrize("status", [404, 410, 500, 503])
def test_a_crd_whose_objects_cannot_be_listed_stays(status: int) -> None:
    found = opened(api := Api(**{RULES: status}))
    carry_out(removal.delete_crds, found)
    assert api.deleted == {}
    assert f"cannot list its objects: {status} no healthy upstream." in messages(found)["GF980"]


def test_a_crd_that_serves_no_version_stays() -> None:
    found = opened(api := Api(**{CRD: crd(served=False)}))
    carry_out(removal.delete_crds, found)
    assert (api.deleted, list(messages(found))) == ({}, ["GF980"])


def test_a_crd_that_was_never_established_has_no_objects() -> None:
    found = opened(api := Api(**{CRD: {**crd(), "status": {}}, RULES: 404}))
    carry_out(removal.delete_crds, found)
    assert set(api.deleted) == {CRD}


def test_a_crd_with_objects_stays() -> None:
    found = opened(api := Api(**{RULES: [item("theirs", namespace="team")]}))
    carry_out(removal.delete_crds, found)
    assert api.deleted == {}
    assert "PrometheusRule team/theirs" in messages(found)["GF973"]


def test_without_the_permission_to_list_its_objects_a_crd_stays() -> None:
    found = opened(api := Api(**{RULES: 403}))
    with pytest.raises(ClusterProblem) as caught:
        carry_out(removal.delete_crds, found)
    assert ([each.code for each in caught.value.findings], api.deleted) == (["GF866"], {})


CONFIG = [item("theirs", namespace="monitoring")]


def test_objects_of_every_version_keep_a_namespace() -> None:
    found = opened(api := Api(**{CONFIGS: CONFIG}))
    carry_out(removal.delete_namespaces, found)
    assert api.deleted == {}
    assert "ScrapeConfig monitoring/theirs" in messages(found)["GF975"]
    rules = [path for path in api.asked if path.endswith("monitoring/prometheusrules")]
    assert len(rules) == 1  # in one of the two versions


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({CONFIGS: 503}, f"scrapeconfigs in {GROUP}/v1alpha1 (503 no healthy upstream)"),
        ({CONFIGS: 404}, f"scrapeconfigs in {GROUP}/v1alpha1 (404 no healthy upstream)"),
        ({f"{SPACE}/configmaps": 500}, "configmaps in v1 (500 no healthy upstream)"),
        ({f"/apis/{GROUP}/v1alpha1": 503}, f"{GROUP}/v1alpha1 (503 no healthy upstream)"),
        ({f"/apis/{GROUP}/v1": {}}, f"{GROUP}/v1 (no list of kinds)"),
        ({"/api/v1": 503}, "v1 (503 no healthy upstream)"),
        (
            {API_SERVICES: [item("v1beta1.metrics.k8s.io")]},
            'metrics.k8s.io/v1beta1 (404 metrics.k8s.io "v1beta1" not found)',
        ),
        (
            {CRDS: [item("things.example.com")], f"{CRDS}/things.example.com": crd()},
            "CRD things.example.com (the API does not serve it)",
        ),
    ],
)
def test_a_namespace_of_which_not_all_is_known_stays_and_the_removal_fails(
    broken: dict[str, Any], said: str
) -> None:
    found = opened(api := Api(**broken))
    with pytest.raises(ClusterProblem) as caught:
        carry_out(removal.delete_namespaces, found)
    assert ([each.code for each in caught.value.findings], api.deleted) == (["GF981"], {})
    assert said in messages(found)["GF981"]


def test_groups_that_a_starting_server_leaves_out_are_asked_all_the_same() -> None:
    found = opened(api := Api(**{"/apis": {"groups": []}, CONFIGS: CONFIG}))
    carry_out(removal.delete_namespaces, found)
    assert (api.deleted, list(messages(found))) == ({}, ["GF975"])


def test_a_crd_that_left_after_it_was_listed_keeps_no_namespace() -> None:
    found = opened(api := Api(**{CRDS: [item("things.example.com")]}))
    carry_out(removal.delete_namespaces, found)
    assert set(api.deleted) == {SPACE}


def test_a_crd_that_is_not_known_fails_the_removal_after_all_else_is_done() -> None:
    found = opened(api := Api(**{RULES: 503}))
    carry_out(removal.delete_crds, found)
    with pytest.raises(ClusterProblem) as caught:
        carry_out(removal.delete_namespaces, found)
    assert ([each.code for each in caught.value.findings], set(api.deleted)) == (
        ["GF980"], {SPACE},
    )  # fmt: skip


def test_a_preparation_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sees the cluster as it is before releases are gone."""
    monkeypatch.setattr(removal_deletes, "state", SimpleNamespace(is_executing=False))
    found = opened(Api(**{RULES: 503, CONFIGS: 503}))
    carry_out(removal.delete_crds, found)
    carry_out(removal.delete_namespaces, found)
    assert (found.unknown, messages(found)) == ([], {})


@pytest.mark.parametrize(
    ("answer", "code"),
    [([item("theirs", namespace="team")], "GF978"), (503, "GF982"), ([], ""), (["ours"], "")],
)
def test_helm_deletes_a_crd_only_without_objects_of_others(answer: Any, code: str) -> None:
    if answer == ["ours"]:
        answer = [item("ours", namespace="monitoring", labels=OURS)]
    found = opened(Api(**{RULES: answer}), templated=True)
    if not code:
        assert removal._uninstall(None, None, found, STACK)  # type: ignore[arg-type]
        return
    with pytest.raises(ClusterProblem) as caught:
        removal._uninstall(None, None, found, STACK)  # type: ignore[arg-type]
    assert ([each.code for each in caught.value.findings], found.acted) == ([code], False)


def test_crds_of_other_releases_do_not_keep_a_release() -> None:
    found = opened(Api(**{RULES: 503}), templated=True)
    other = HelmRelease("plugin", "monitoring", 1, "deployed", "plugin", "1.0.0", "1", {})
    assert other.ref != ReleaseRef("monitoring", "stack")
    assert removal._uninstall(None, None, found, other)  # type: ignore[arg-type]
