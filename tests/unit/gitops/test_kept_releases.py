"""Releases that Flux or Argo CD applies: planned as gpufleet's, judged, and never changed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpufleet.gitops.facts_file import facts_text, parse_facts
from gpufleet.gpu_stack.model import StackPlan
from gpufleet.gpu_stack.removal import Remains, plan_stack_removal
from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.helm.plan import Controller, plan_release
from gpufleet.helm.release import HelmVersion, Release, ReleasePlan
from gpufleet.helm.strategy import helm_catalog
from gpufleet.kube.answers import cluster_facts
from gpufleet.kube.facts import ClusterFacts, ObjectRef
from gpufleet.kube.keepers import Keeper, keeper_of
from gpufleet.kube.kept_releases import with_keepers
from tests.unit.gpu_stack.gpu_clusters import OURS, named, names, stack, work

pytestmark = pytest.mark.claim(
    "Releases that Flux or Argo CD applies are judged, and left alone by apply and remove.",
    level=1,
)
CAPTURE = Path(__file__).parents[1] / "kube/captures/cluster-1.36.3.answers.json"
MAIN = ObjectRef("Prometheus", "elsewhere", "main")
TOOLS = ("Flux", "Argo CD", "Argo CD after helm")
CONTROLLER = Controller("me", 0, HelmVersion(3, 19))


def by_flux(item: dict[str, Any], name: str) -> None:
    labels = item["metadata"].setdefault("labels", {})
    labels["helm.toolkit.fluxcd.io/name"] = name
    labels["helm.toolkit.fluxcd.io/namespace"] = item["metadata"]["namespace"]


def by_argocd(item: dict[str, Any], name: str) -> None:
    about = item["metadata"]
    group = f"apps/DaemonSet:{about['namespace']}/{about['name']}"
    chart = name.removeprefix("gpufleet-")
    about["labels"] = {**(about.get("labels") or {}), "helm.sh/chart": f"{chart}-1.2.3"}
    about.setdefault("annotations", {})["argocd.argoproj.io/tracking-id"] = f"{name}:{group}"


def kept_cluster(tool: str, prefix: str = "gpufleet-") -> ClusterFacts:
    """A real cluster with the whole stack, as the tool would have installed it."""
    answers = json.loads(CAPTURE.read_text())
    for kind in answers["workloads"].values():
        for item in kind:
            annotations = item["metadata"].get("annotations") or {}
            release = annotations.get("meta.helm.sh/release-name")
            if tool == "Argo CD" and release:  # it ran `helm template`
                del annotations["meta.helm.sh/release-name"]
            if release:
                (by_flux if tool == "Flux" else by_argocd)(item, f"{prefix}{release}")
    if tool == "Argo CD":
        answers["secrets"], answers["releases"] = [], []
    facts = cluster_facts("sandbox", answers)
    return replace(facts, releases=tuple(replace(each, labels={}) for each in facts.releases))


def judged(plan: StackPlan, facts: ClusterFacts) -> dict[str, ReleasePlan]:
    return {
        release.name: plan_release(release, facts, CONTROLLER, helm_catalog())
        for release in plan.releases
    }


@pytest.mark.parametrize("tool", TOOLS)
def test_they_are_planned_as_those_that_gpufleet_installed(tool: str) -> None:
    ours = cluster_facts("sandbox", json.loads(CAPTURE.read_text()))
    wanted = {release.name: release.values for release in stack(ours).releases}
    assert len(wanted) == 4
    found = {release.name: release.values for release in stack(kept_cluster(tool)).releases}
    assert found == wanted


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("adopt", [False, True])
def test_apply_changes_none_of_them_and_says_so(tool: str, adopt: bool) -> None:
    facts = kept_cluster(tool)
    pins = {"nvidia-device-plugin": "0.19.0"}
    data = {"cluster_adopt_releases": adopt, "cluster_chart_versions": pins}
    for name, plan in judged(stack(facts, **data), facts).items():
        assert (name, plan.action) == (name, "no-op")
        found = {finding.code: finding.message for finding in plan.findings}
        assert {"GF825", "GF826"} & set(found), name
        assert tool.removesuffix(" after helm") in "".join(found.values())


@pytest.mark.parametrize("tool", TOOLS)
def test_a_difference_from_the_inventory_is_a_warning(tool: str) -> None:
    facts = kept_cluster(tool)
    release = facts.release("kube-system", "nvidia-device-plugin")
    assert release is not None
    (wanted,) = (one for one in stack(facts).releases if one.name == "nvidia-device-plugin")
    same = replace(wanted, version=release.chart_version, values=release.values)
    for version, code in (("9.9.9", "GF826"), (release.chart_version, "GF825")):
        one: Release = replace(same, version=version)
        plan = plan_release(one, facts, CONTROLLER, helm_catalog())
        assert (plan.action, plan.findings[0].code) == ("no-op", code)


@pytest.mark.parametrize("tool", TOOLS[1:])
def test_a_record_that_argocd_does_not_keep_does_not_count(tool: str) -> None:
    found = kept_cluster(tool).release("kube-system", "nvidia-device-plugin")
    assert found
    assert (found.chart_version, found.values, found.revision) == ("1.2.3", {}, 0)


def test_an_operators_workload_shows_the_keeper_of_its_release() -> None:
    """The operator copies the marks of its object; workloads of the chart may have none."""
    record = named("kube-prometheus-stack", "elsewhere", OURS, operated=(MAIN,))
    keeper = Keeper("Argo CD", "Application", "", "platform")
    owner = ObjectRef("Prometheus", "", "main")
    made = replace(work("prometheus-main", "prometheus"), owner=owner, keeper=keeper)
    (found,), _ = with_keepers([record], [made])
    assert found.keeper == keeper


@pytest.mark.parametrize("tool", TOOLS)
def test_their_facts_survive_a_file(tool: str) -> None:
    facts = kept_cluster(tool)
    assert parse_facts(facts_text({"lab": facts})) == {"lab": facts}


def test_the_digest_that_flux_adds_to_a_version_is_no_difference() -> None:
    facts = kept_cluster("Flux")
    (found,) = (one for one in facts.releases if one.name == "nvidia-device-plugin")
    digested = replace(found, chart_version=f"{found.chart_version}+0123456789ab")
    facts = replace(facts, releases=(digested,))
    (wanted,) = (one for one in stack(facts).releases if one.name == found.name)
    same = replace(wanted, version=found.chart_version, values=found.values)
    plan = plan_release(same, facts, CONTROLLER, helm_catalog())
    assert plan.findings[0].code == "GF825"


def test_a_release_that_flux_could_not_apply_is_a_warning() -> None:
    facts = kept_cluster("Flux")
    (found,) = (one for one in facts.releases if one.name == "nvidia-device-plugin")
    facts = replace(facts, releases=(replace(found, status="failed"),))
    (wanted,) = (one for one in stack(facts).releases if one.name == found.name)
    same = replace(wanted, version=found.chart_version, values=found.values)
    plan = plan_release(same, facts, CONTROLLER, helm_catalog())
    assert (plan.action, plan.findings[0].code) == ("no-op", "GF827")
    show = "kubectl -n kube-system describe helmrelease gpufleet-nvidia-device-plugin"
    assert show in plan.findings[0].remedy


def helm_release(
    chart: str, space: str, *conditions: dict[str, str], **spec: Any
) -> dict[str, Any]:
    """A HelmRelease from `gpufleet render`."""
    return {
        "metadata": {"name": f"gpufleet-{chart}", "namespace": space},
        "spec": {"releaseName": chart, **spec},
        "status": {"conditions": list(conditions)},
    }


NO_CHART = {"type": "Ready", "status": "False", "message": "no chart\nversion found."}
READY = {"type": "Ready", "status": "True", "message": "Helm install succeeded"}
UNDONE = {"reason": "RollbackSucceeded", "message": "Helm rollback succeeded"}
ROLLED_BACK = [
    {"type": "Ready", "status": "False", **UNDONE},
    {"type": "Remediated", "status": "True", **UNDONE},
    {"type": "Released", "status": "False", "reason": "UpgradeFailed", "message": "invalid"},
]


@pytest.mark.parametrize(
    ("conditions", "installed", "problem"),
    [
        ([NO_CHART], True, ": no chart version found;"),
        ([NO_CHART], False, ": no chart version found;"),
        ([{"type": "Ready", "status": "Unknown"}], False, ": it has installed no revision yet;"),
        ([], False, ": it has installed no revision yet;"),
        (ROLLED_BACK, True, ": invalid;"),
        ([READY, {**NO_CHART, "type": "Released"}], True, ""),
    ],
)
def test_what_flux_reports_of_a_release_is_shown(
    conditions: list[dict[str, str]], installed: bool, problem: str
) -> None:
    """Helm has a record only of charts that Flux could read, and of none before the first one."""
    answers = json.loads(CAPTURE.read_text())
    if not installed:
        answers["secrets"], answers["releases"] = [], []
        answers["workloads"] = {kind: [] for kind in answers["workloads"]}
    answers["helm_releases"] = [helm_release("nvidia-device-plugin", "kube-system", *conditions)]
    facts = cluster_facts("sandbox", answers)
    plan = judged(stack(facts), facts)["nvidia-device-plugin"]
    assert plan.action == "no-op"
    found = {finding.code: finding.message for finding in plan.findings}
    assert problem in found.get("GF827", "")
    assert ("GF827" in found) is bool(problem)


@pytest.mark.parametrize("running", [False, True])
def test_a_helmrelease_in_another_namespace_than_its_release(running: bool) -> None:
    """Its record is in the namespace of the HelmRelease, where gpufleet does not look."""
    theirs = helm_release("exporter", "flux-system", READY, targetNamespace="elsewhere")
    unnamed = {"metadata": {"name": "platform", "namespace": "elsewhere"}}
    keeper = Keeper("Flux", "HelmRelease", "flux-system", "gpufleet-exporter")
    made = [replace(work("exporter", "dcgm", release="exporter"), keeper=keeper)]
    (found,), _ = with_keepers((), made if running else (), [theirs, unnamed])
    assert (found.namespace, found.name, found.keeper) == ("elsewhere", "exporter", keeper)
    assert bool(found.problem) is not running


def test_a_helmrelease_for_another_cluster_keeps_nothing_here() -> None:
    remote = {"secretRef": {"name": "prod-kubeconfig"}}
    theirs = helm_release("exporter", "flux-system", READY, kubeConfig=remote)
    assert with_keepers((), (), [theirs]) == ((), ())


def test_a_release_of_helm_with_gpufleets_prefix_has_no_keeper() -> None:
    """The label is also Helm's, with the name of the release."""
    about = {
        "labels": {"app.kubernetes.io/instance": "gpufleet-gpus"},
        "annotations": {"meta.helm.sh/release-name": "gpufleet-gpus"},
    }
    assert keeper_of({"metadata": about}) is None
    about["annotations"] = {"meta.helm.sh/release-name": "gpus"}
    assert keeper_of({"metadata": about}) == Keeper("Argo CD", "Application", "", "gpufleet-gpus")


@pytest.mark.parametrize(
    ("namespace", "name", "owned", "kept"),
    [
        ("gpu", "exporter", False, True),
        ("gpu", "copy", False, False),
        ("mine", "exporter", False, False),
        ("gpu", "prometheus-exporter", True, True),
        ("", "exporter", False, True),
    ],
)
def test_the_mark_of_argocd_on_a_copy_does_not_count(
    namespace: str, name: str, owned: bool, kept: bool
) -> None:
    """Argo CD ignores a mark that names another object. Operators copy marks to what they make."""
    mark = {"argocd.argoproj.io/tracking-id": "platform:apps/DaemonSet:gpu/exporter"}
    about: dict[str, Any] = {"name": name, "annotations": mark}
    about |= {"namespace": namespace} if namespace else {}
    about |= {"ownerReferences": [{"kind": "Prometheus", "name": "main"}]} if owned else {}
    assert bool(keeper_of({"metadata": about})) is kept


def test_a_release_of_another_helmrelease_is_a_users_own() -> None:
    facts = kept_cluster("Flux", prefix="")
    assert "kube-prometheus-stack" not in names(stack(facts))
    plan = judged(stack(facts, monitoring_prometheus="install"), facts)["kube-prometheus-stack"]
    assert (plan.action, plan.findings[0].code) == ("no-op", "GF826")


@pytest.mark.parametrize("tool", TOOLS)
def test_remove_leaves_them(tool: str) -> None:
    facts = kept_cluster(tool)
    facts = replace(facts, releases=tuple(replace(one, labels=OURS) for one in facts.releases))
    settings, _ = load_cluster_settings({})
    assert settings
    removal = plan_stack_removal(settings, facts, Remains())
    assert removal.releases == ()
    assert {finding.code for finding in removal.findings} == {"GF971"}
    assert tool.removesuffix(" after helm") in removal.findings[0].message
