"""Builds ClusterFacts from responses of the Kubernetes API. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpufleet.kube.facts import ClusterFacts, HelmRelease, ReleaseRef, WorkloadKind
from gpufleet.kube.helm_releases import (
    UndecodableRelease,
    decode_release,
    installed_releases,
    release_histories,
    revision_of,
)
from gpufleet.kube.kept_releases import with_keepers
from gpufleet.kube.node_answers import gpu_pods_by_node, parse_node
from gpufleet.kube.operated import load_operated_kinds, operated_states
from gpufleet.kube.parse import (
    parse_api_services,
    parse_apis,
    parse_cluster_policy,
    parse_crds,
    parse_lone_pod,
    parse_namespace,
    parse_node_ports,
    parse_prometheus,
    parse_version,
    parse_workload,
)
from gpufleet.kube.system_pods import parse_system_pods

WATCHED_KINDS: tuple[WorkloadKind, ...] = ("DaemonSet", "Deployment", "StatefulSet")
OPTIONAL = (
    "prometheuses",
    "cluster_policies",
    "alertmanagers",
    "api_services",
    "own_releases",
    "helm_releases",
    "runtime_classes",
)
Answers = Mapping[str, Any]


def cluster_facts(context: str, answers: Answers) -> ClusterFacts:
    """Build the facts of a cluster. `answers` has a list of objects per kind, and `version`,
    `groups` (/apis), `workloads` (kind -> objects), `resources` (group/version -> APIResourceList)
    and `system_configs` (ConfigMaps by name). `crds` and `secrets` are metadata. `secrets` has
    every revision of the requested releases, `releases` only the newest."""
    found: dict[str, Any] = {**dict.fromkeys(OPTIONAL, ()), "system_configs": {}, **answers}
    releases, unreadable = _releases(found)
    kinds = load_operated_kinds().by_kind
    made = [
        parse_workload(kind, item) for kind in WATCHED_KINDS for item in found["workloads"][kind]
    ]
    lone = [parse_lone_pod(item) for item in found["pods"]]
    made += [pod for pod in lone if pod]
    releases, workloads = with_keepers(releases, made, found["helm_releases"])
    return ClusterFacts(
        context=context,
        server=parse_version(found["version"]),
        apis=parse_apis(found["groups"]),
        nodes=tuple(map(parse_node, found["nodes"])),
        gpu_pods=gpu_pods_by_node(found["pods"], found["nodes"]),
        crds=parse_crds(found["crds"], found["resources"]),
        releases=releases,
        own_releases=installed_releases(found["own_releases"]),
        unreadable=unreadable,
        workloads=workloads,
        namespaces={
            item["metadata"]["name"]: parse_namespace(item) for item in found["namespaces"]
        },
        node_ports=tuple(port for item in found["services"] for port in parse_node_ports(item)),
        prometheuses=tuple(map(parse_prometheus, found["prometheuses"])),
        cluster_policies=tuple(map(parse_cluster_policy, found["cluster_policies"])),
        api_services=parse_api_services(found["api_services"]),
        system_pods=parse_system_pods(found["pods"], found["system_configs"]),
        runtime_classes={
            item["metadata"]["name"]: item["handler"] for item in found["runtime_classes"]
        },
        operated=operated_states(found["prometheuses"], kinds["Prometheus"])
        | operated_states(found["alertmanagers"], kinds["Alertmanager"]),
    )


def _releases(answers: Answers) -> tuple[tuple[HelmRelease, ...], dict[ReleaseRef, str]]:
    """The readable releases, and the reason for each unreadable one."""
    revisions = release_histories(answers["secrets"])
    found: list[HelmRelease] = []
    unreadable: dict[ReleaseRef, str] = {}
    for secret in answers["releases"]:
        known = revision_of(secret)
        if known is None:
            continue
        try:
            found.append(decode_release(secret).with_history(revisions.get(known[0], ())))
        except UndecodableRelease as error:
            unreadable[known[0]] = str(error)
    return tuple(found), unreadable
