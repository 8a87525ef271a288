"""Gathers a cluster's facts in one pass over its API: in parallel, and only what is needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from gpufleet.kube import findings
from gpufleet.kube.answers import WATCHED_KINDS, Answers, cluster_facts
from gpufleet.kube.facts import ClusterFacts, ReleaseRef, ServerVersion
from gpufleet.kube.helm_releases import ADOPTED_LABEL, OWNER_LABEL, RELEASE_TYPE, newest_revisions
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import METADATA_ONLY, ClusterApi
from gpufleet.kube.operations.refused import ApiError, refusal_findings
from gpufleet.kube.parse import crd_groups, parse_version
from gpufleet.kube.system_pods import SYSTEM_NAMESPACE, config_maps

THREADS = 8
_REFUSED, _MISSING, _DOWN = 403, 404, 503


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request to the API. Some errors count as an empty response. `optional`: the server does
    not have the object. `foreign`, for APIs that gpufleet can do without: also any 404 or 503 of
    the program behind the API. `dispensable`: also a missing permission."""

    path: str
    many: bool = True  # a list, read page by page
    accept: str = "application/json"
    query: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False
    foreign: bool = False
    dispensable: bool = False


OWN_RELEASES = ApiRequest(
    "/api/v1/secrets",
    accept=METADATA_ONLY,
    query={"labelSelector": f"owner=helm,{OWNER_LABEL}", "fieldSelector": f"type={RELEASE_TYPE}"},
)
FIRST = {
    "own_releases": replace(
        OWN_RELEASES,
        query={**OWN_RELEASES.query, "labelSelector": f"owner=helm,{OWNER_LABEL},!{ADOPTED_LABEL}"},
        dispensable=True,
    ),
    "nodes": ApiRequest("/api/v1/nodes"),
    "namespaces": ApiRequest("/api/v1/namespaces"),
    "services": ApiRequest("/api/v1/services"),
    "pods": ApiRequest("/api/v1/pods"),
    "crds": ApiRequest(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", accept=METADATA_ONLY
    ),
    "groups": ApiRequest("/apis", many=False),
    "DaemonSet": ApiRequest("/apis/apps/v1/daemonsets"),
    "Deployment": ApiRequest("/apis/apps/v1/deployments"),
    "StatefulSet": ApiRequest("/apis/apps/v1/statefulsets"),
    "api_services": ApiRequest("/apis/apiregistration.k8s.io/v1/apiservices"),
    "runtime_classes": ApiRequest(
        "/apis/node.k8s.io/v1/runtimeclasses", optional=True, dispensable=True
    ),
}
PROMETHEUSES = "prometheuses.monitoring.coreos.com"
ALERTMANAGERS = "alertmanagers.monitoring.coreos.com"
CLUSTER_POLICIES = "clusterpolicies.nvidia.com"
HELM_RELEASES = "helmreleases.helm.toolkit.fluxcd.io"
CUSTOM = {
    PROMETHEUSES: ApiRequest("/apis/monitoring.coreos.com/v1/prometheuses", optional=True),
    ALERTMANAGERS: ApiRequest("/apis/monitoring.coreos.com/v1/alertmanagers", optional=True),
    CLUSTER_POLICIES: ApiRequest("/apis/nvidia.com/v1/clusterpolicies", optional=True),
    HELM_RELEASES: ApiRequest(
        "/apis/helm.toolkit.fluxcd.io/v2/helmreleases", optional=True, dispensable=True
    ),
}
NEEDED_GROUPS = frozenset(name.partition(".")[2] for name in CUSTOM)


def gather_cluster(
    api: ClusterApi, oldest: ServerVersion | None = None, releases: Collection[ReleaseRef] = ()
) -> ClusterFacts:
    """Gather the facts of the cluster of `api`. `releases`: the Helm releases to read; Secrets of
    other releases are not read.

    Raises ClusterProblem if it is unreachable or older than `oldest`, or if permissions are missing
    (all of them at once).
    """
    version = api.get("/version")
    server = parse_version(version)
    if oldest and server < oldest:
        raise ClusterProblem(findings.SERVER_TOO_OLD(version=server.full, oldest=oldest))
    return cluster_facts(api.context, gather_answers(api, version, releases))


def gather_answers(
    api: ClusterApi, version: Mapping[str, Any], releases: Collection[ReleaseRef]
) -> Answers:
    """All responses for ClusterFacts. `version`: the response of /version."""
    histories = {f"secrets {ref}": history_of(ref) for ref in releases}
    first = ask_all(api, {**FIRST, **histories})
    revisions = [item for name in histories for item in first[name]]
    secrets = {
        path: ApiRequest(path, many=False, optional=True)
        for ref, name in newest_revisions(revisions).items()
        for path in [f"/api/v1/namespaces/{ref.namespace}/secrets/{name}"]
    }
    groups = {name: _resources(name) for name in crd_groups(first["crds"], first["groups"])}
    there = {item["metadata"]["name"] for item in first["crds"]}
    custom = {name: ask for name, ask in CUSTOM.items() if name in there}
    configs = config_maps(first["pods"])
    path = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps"
    named = {
        f"config {name}": ApiRequest(f"{path}/{name}", many=False, optional=True, dispensable=True)
        for name in configs
    }
    second = ask_all(api, {**secrets, **groups, **custom, **named})
    return {
        **{name: first[name] for name in FIRST if name not in WATCHED_KINDS},
        "version": version,
        "workloads": {kind: first[kind] for kind in WATCHED_KINDS},
        "secrets": revisions,
        "releases": [second[name] for name in secrets if second[name]],  # the rest was deleted
        "resources": {name: second[name] for name in groups},
        "prometheuses": second.get(PROMETHEUSES) or (),
        "cluster_policies": second.get(CLUSTER_POLICIES) or (),
        "alertmanagers": second.get(ALERTMANAGERS) or (),
        "helm_releases": second.get(HELM_RELEASES) or (),
        "system_configs": {name: second[f"config {name}"] for name in configs},
    }


def history_of(ref: ReleaseRef) -> ApiRequest:
    """The request for every revision of a release, without content, which includes the chart."""
    return ApiRequest(
        f"/api/v1/namespaces/{ref.namespace}/secrets",
        accept=METADATA_ONLY,
        query={
            "labelSelector": f"owner=helm,name={ref.name}",
            "fieldSelector": f"type={RELEASE_TYPE}",
        },
    )


def _resources(group_version: str) -> ApiRequest:
    """The request for the resources of a group's version."""
    foreign = group_version.partition("/")[0] not in NEEDED_GROUPS
    return ApiRequest(f"/apis/{group_version}", many=False, optional=True, foreign=foreign)


def ask_all(api: ClusterApi, asks: Mapping[str, ApiRequest]) -> dict[str, Any]:
    """Send requests in parallel. Raises ClusterProblem with all rejected requests."""
    answers: dict[str, Any] = {}
    refused: list[ApiError] = []
    with ThreadPoolExecutor(THREADS) as pool:
        waiting = {name: pool.submit(_ask, api, ask) for name, ask in asks.items()}
    for name, future in waiting.items():
        try:
            answers[name] = future.result()
        except ApiError as error:
            refused.append(error)
    if refused:
        raise ClusterProblem(*refusal_findings(refused))
    return answers


def _ask(api: ClusterApi, ask: ApiRequest) -> Any:
    call = api.list if ask.many else api.get
    try:
        return call(ask.path, ask.accept, **ask.query)
    except ApiError as error:
        missing = error.is_missing or (ask.foreign and error.status == _MISSING)
        down = ask.foreign and error.status == _DOWN
        refused = ask.dispensable and error.status == _REFUSED
        if (ask.optional and missing) or down or refused:
            return [] if ask.many else {}
        raise
