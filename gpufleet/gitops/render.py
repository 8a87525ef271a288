"""The files of one cluster for a repository: what `gpu_cluster` would do. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpufleet.core.visible import one_line
from gpufleet.gitops.releases import Style, argocd_objects, flux_objects
from gpufleet.gitops.yaml_text import FILE_MARK, yaml_file
from gpufleet.gpu_stack.model import StackPlan, runtime_class
from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.release import Release
from gpufleet.kube.facts import ClusterFacts
from gpufleet.kube.objects import MANAGED_BY_LABELS, Body, ObjectSet, namespace_body

RELEASES_FOLDER, OBJECTS_FOLDER = "releases", "objects"
OF_KUBERNETES = ("default", "kube-system")  # namespaces that exist in every cluster
# Flux and Argo CD would delete all that is in a namespace, also volumes and objects of others
KEEP = {
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
    "argocd.argoproj.io/sync-options": "Prune=false",
}
Files = dict[str, str]


def folder_names(clusters: Iterable[str]) -> dict[str, str]:
    """Cluster -> its folder: @local -> local. Clusters that would share one get "" instead."""
    found = {name: re.sub(r"[^\w.-]+", "-", name).strip(".-") for name in clusters}
    count = Counter(found.values())
    return {name: folder if count[folder] == 1 else "" for name, folder in found.items()}


@dataclass(frozen=True, slots=True)
class NeededSecret:
    """A Secret that must exist in the cluster. `user`: the program that reads it; `secret`: its
    namespace and name."""

    user: str
    secret: str
    keys: tuple[str, ...]


def render_files(
    name: str,
    settings: ClusterSettings,
    facts: ClusterFacts,
    plan: StackPlan,
    style: Style,
    secrets: Sequence[NeededSecret],
) -> Files:
    """Path -> content. `name`: of the cluster in the inventory. The folder of releases also has
    the objects that their pods need; the folder of objects has kinds that the releases add."""
    documents: dict[str, list[Body]] = {}
    if needed := list(_prerequisites(settings, facts, plan)):
        documents[f"{RELEASES_FOLDER}/prerequisites.yaml"] = needed
    values: dict[str, list[Body]] = {}
    for number, release in enumerate(plan.releases):
        path = f"{RELEASES_FOLDER}/{release.name}"
        earlier = plan.releases[:number]
        if style == "values":
            values[f"{path}/values.yaml"] = [dict(release.values)]
        else:
            make = flux_objects if style == "flux" else argocd_objects
            documents[f"{path}.yaml"] = [*make(release, earlier)]
    for body in _objects(plan.exporter_monitor, plan.alerts, plan.dashboards):
        kind, own = body["kind"].lower(), body["metadata"]["name"]
        documents[f"{OBJECTS_FOLDER}/{kind}-{own}.yaml"] = [body]
    files = {path: yaml_file(each) for path, each in {**documents, **values}.items()}
    for folder in (RELEASES_FOLDER, OBJECTS_FOLDER):
        if paths := sorted(path for path in documents if path.startswith(f"{folder}/")):
            files[f"{folder}/kustomization.yaml"] = _kustomization(folder, paths)
    return {**files, "README.md": _index(name, plan.releases, secrets)}


def stack_objects(plan: StackPlan) -> Iterator[Body]:
    """The objects of the stack outside its releases."""
    return _objects(plan.counters, plan.exporter_monitor, plan.alerts, plan.dashboards)


def _objects(*sets: ObjectSet | None) -> Iterator[Body]:
    for wanted in sets:
        if wanted:
            yield from wanted.labelled().values()


def _prerequisites(
    settings: ClusterSettings, facts: ClusterFacts, plan: StackPlan
) -> Iterator[Body]:
    """Objects that must exist before the releases: namespaces, RuntimeClass, list of counters."""
    for body in map(namespace_body, sorted(_new_namespaces(facts, plan))):
        yield {**body, "metadata": {**body["metadata"], "annotations": KEEP}}
    name = settings.device_plugin.runtime_class
    if name and settings.cluster.stack == "device-plugin":
        served = [f"node.k8s.io/{one}" for one in ("v1", "v1beta1")]
        yield runtime_class(name, next(filter(facts.serves_api, served), served[0]))
    yield from _objects(plan.counters)


def _new_namespaces(facts: ClusterFacts, plan: StackPlan) -> set[str]:
    """The namespaces that gpufleet creates. It changes no other namespace."""
    wanted = {release.namespace for release in plan.releases}
    wanted |= {body["metadata"]["namespace"] for body in stack_objects(plan)}
    others = {
        space.name
        for space in facts.namespaces.values()
        if not MANAGED_BY_LABELS.items() <= space.labels.items()
    }
    return wanted - others - set(OF_KUBERNETES)


def _kustomization(folder: str, paths: list[str]) -> str:
    body: Mapping[str, Any] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [path.removeprefix(f"{folder}/") for path in paths],
    }
    return yaml_file([body])


def _index(name: str, releases: Sequence[Release], secrets: Sequence[NeededSecret]) -> str:
    """README.md: the releases in order, and the Secrets to create."""
    lines = [
        f"<!-- {FILE_MARK} -->",
        "",
        f"# GPU stack of {one_line(name)}",
        "",
        "| release, in this order | namespace | chart | source |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {each.name} | {each.namespace} | {each.chart} {each.version} | {each.source.location} |"
        for each in releases
    ]
    if secrets:
        lines += ["", "| Secret to create first | keys | read by |", "|---|---|---|"]
    lines += [f"| {each.secret} | {', '.join(each.keys)} | {each.user} |" for each in secrets]
    return "\n".join(lines) + "\n"
