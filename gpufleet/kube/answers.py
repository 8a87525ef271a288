"""Build ClusterFacts from the responses of the Kubernetes API. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpufleet.kube.facts import (
    ClusterFacts,
    HelmRelease,
    ObjectRef,
    ReleaseRef,
    Workload,
    WorkloadKind,
)
from gpufleet.kube.helm_releases import UndecodableRelease, decode_release, histories, revision_of
from gpufleet.kube.node_answers import parse_node
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

KINDS: tuple[WorkloadKind, ...] = ("DaemonSet", "Deployment", "StatefulSet")
Items = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Answers:
    """The responses of the API. Lists are the `items` of lists of objects."""

    version: Mapping[str, Any]
    groups: Mapping[str, Any]  # /apis
    nodes: Items
    namespaces: Items
    services: Items
    pods: Items
    workloads: Mapping[str, Items]  # kind -> objects
    crds: Items  # metadata only
    secrets: Items  # metadata only: every revision of the requested Helm releases
    releases: Items  # Secrets: the newest revision of each release
    resources: Mapping[str, Mapping[str, Any]]  # group/version -> APIResourceList
    prometheuses: Items = field(default=())
    cluster_policies: Items = field(default=())
    alertmanagers: Items = field(default=())
    api_services: Items = field(default=())
    system_configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by name


def cluster_facts(context: str, answers: Answers) -> ClusterFacts:
    """Facts of the cluster with these responses."""
    releases, unreadable = _releases(answers)
    return ClusterFacts(
        context=context,
        server=parse_version(answers.version),
        apis=parse_apis(answers.groups),
        nodes=tuple(parse_node(item) for item in answers.nodes),
        crds=parse_crds(answers.crds, answers.resources),
        releases=releases,
        unreadable=unreadable,
        workloads=_workloads(answers),
        namespaces={item["metadata"]["name"]: parse_namespace(item) for item in answers.namespaces},
        node_ports=tuple(port for item in answers.services for port in parse_node_ports(item)),
        prometheuses=tuple(parse_prometheus(item) for item in answers.prometheuses),
        cluster_policies=tuple(parse_cluster_policy(item) for item in answers.cluster_policies),
        api_services=parse_api_services(answers.api_services),
        system_pods=parse_system_pods(answers.pods, answers.system_configs),
        operated=_operated(answers),
    )


def _releases(answers: Answers) -> tuple[tuple[HelmRelease, ...], dict[ReleaseRef, str]]:
    """The readable releases, and the reason for each unreadable one."""
    revisions = histories(answers.secrets)
    found: list[HelmRelease] = []
    unreadable: dict[ReleaseRef, str] = {}
    for secret in answers.releases:
        known = revision_of(secret)
        if known is None:
            continue
        try:
            found.append(decode_release(secret).with_history(revisions.get(known[0], ())))
        except UndecodableRelease as error:
            unreadable[known[0]] = str(error)
    return tuple(found), unreadable


def _operated(answers: Answers) -> dict[ObjectRef, str]:
    kinds = load_operated_kinds().by_kind
    prometheuses = operated_states(answers.prometheuses, kinds["Prometheus"])
    return {**prometheuses, **operated_states(answers.alertmanagers, kinds["Alertmanager"])}


def _workloads(answers: Answers) -> tuple[Workload, ...]:
    made = [parse_workload(kind, item) for kind in KINDS for item in answers.workloads[kind]]
    lone = [parse_lone_pod(item) for item in answers.pods]
    return (*made, *(pod for pod in lone if pod))
