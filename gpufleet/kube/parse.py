"""Parses responses of the Kubernetes API, as plain dicts, into the types of `facts`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from gpufleet.kube.facts import (
    ApiService,
    ClusterPolicy,
    Crd,
    Namespace,
    NodePort,
    ObjectRef,
    Placement,
    PrometheusInstance,
    ReleaseRef,
    ServerVersion,
    Workload,
    WorkloadKind,
)
from gpufleet.kube.keepers import keeper_of

Answer = Mapping[str, Any]

RELEASE_NAME = "meta.helm.sh/release-name"  # annotations that Helm sets on its objects
RELEASE_NAMESPACE = "meta.helm.sh/release-namespace"
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)")
_CONTROLLED = ("ReplicaSet", "DaemonSet", "StatefulSet", "Job", "ReplicationController")


def parse_version(answer: Answer) -> ServerVersion:
    """Parse `/version`. Vendors write minors such as "29+"."""
    number = re.match(r"\d+", str(answer["minor"]))
    minor = int(number.group()) if number else 0
    return ServerVersion(int(answer["major"]), minor, str(answer["gitVersion"]))


def seconds_of(time: object) -> int:
    """A time of the API in seconds since 1970, 0 if it is invalid."""
    match = _TIME.fullmatch(str(time))
    try:
        text = match[1] + match[2].replace("Z", "+00:00") if match else ""
        return int(datetime.fromisoformat(text).timestamp())
    except ValueError:
        return 0


def true_condition(answer: Answer, kind: str) -> Answer:
    """The condition of that type in an object's status if it is true, or {}."""
    conditions = (answer.get("status") or {}).get("conditions") or ()
    return next((c for c in conditions if c["type"] == kind and c["status"] == "True"), {})


def parse_crds(metadata: Iterable[Answer], resources: Mapping[str, Answer]) -> dict[str, Crd]:
    """CRDs by name.

    `metadata`: PartialObjectMetadata of the CustomResourceDefinitions; `resources`: APIResourceList
    by group and version ("monitoring.coreos.com/v1"), of the groups of CRDs.
    """
    kinds: dict[str, str] = {}
    versions: dict[str, list[str]] = {}
    for group_version, answer in resources.items():
        group, version = group_version.split("/")
        for resource in answer.get("resources") or ():
            if "/" in resource["name"]:
                continue  # a subresource
            name = f"{resource['name']}.{group}"
            kinds[name] = resource["kind"]
            versions.setdefault(name, []).append(version)
    crds = {}
    for item in metadata:
        name = item["metadata"]["name"]
        crds[name] = Crd(
            name=name,
            kind=kinds.get(name, ""),
            versions=tuple(versions.get(name, ())),
            annotations=item["metadata"].get("annotations") or {},
            release=release_of(item),
        )
    return crds


def crd_groups(metadata: Iterable[Answer], groups: Answer) -> list[str]:
    """Each "group/version" of `/apis` with CRDs, in the server's order."""
    of_crds = {item["metadata"]["name"].split(".", 1)[1] for item in metadata}
    return [
        version["groupVersion"]
        for group in groups.get("groups") or ()
        if group["name"] in of_crds
        for version in group["versions"]
    ]


def parse_apis(groups: Answer) -> frozenset[str]:
    """Every "group/version" of `/apis`."""
    return frozenset(
        version["groupVersion"]
        for group in groups.get("groups") or ()
        for version in group["versions"]
    )


def release_of(answer: Answer) -> ReleaseRef | None:
    """The Helm release of an object, from its annotations."""
    annotations = answer["metadata"].get("annotations") or {}
    name = annotations.get(RELEASE_NAME)
    return ReleaseRef(annotations.get(RELEASE_NAMESPACE, ""), name) if name else None


def parse_workload(kind: WorkloadKind, answer: Answer) -> Workload:
    """One DaemonSet, Deployment or StatefulSet of apps/v1."""
    spec, status = answer["spec"], answer.get("status") or {}
    owners = answer["metadata"].get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), None)
    if kind == "DaemonSet":
        wanted = status.get("desiredNumberScheduled") or 0
        ready, updated = status.get("numberAvailable"), status.get("updatedNumberScheduled")
    else:
        wanted = spec["replicas"] if spec.get("replicas") is not None else 1
        ready = status.get("readyReplicas" if kind == "StatefulSet" else "availableReplicas")
        updated = status.get("updatedReplicas")
    old = (status.get("replicas") or 0) - (updated or 0) if kind == "Deployment" else 0
    if (spec.get("updateStrategy") or {}).get("type") == "OnDelete":
        updated = wanted  # its pods are not replaced, so do not wait for that
    return Workload(
        kind=kind,
        namespace=answer["metadata"]["namespace"],
        name=answer["metadata"]["name"],
        wanted=wanted,
        ready=ready or 0,
        updated=updated or 0,
        old=old,
        settled=(status.get("observedGeneration") or 0) >= answer["metadata"].get("generation", 0),
        selector=(spec.get("selector") or {}).get("matchLabels") or {},
        release=release_of(answer),
        owner=ObjectRef(owner["kind"], "", owner["name"]) if owner else None,
        labels=answer["metadata"].get("labels") or {},
        keeper=keeper_of(answer),
        **_of_pod(spec["template"]["spec"]),
    )


def parse_lone_pod(answer: Answer) -> Workload | None:
    """A running pod without a controller, or a static pod. Otherwise None."""
    owners = answer["metadata"].get("ownerReferences") or ()
    phase = (answer.get("status") or {}).get("phase")
    if phase in ("Succeeded", "Failed") or any(owner["kind"] in _CONTROLLED for owner in owners):
        return None
    return Workload(
        kind="Pod",
        namespace=answer["metadata"]["namespace"],
        name=answer["metadata"]["name"],
        wanted=1,
        ready=int(bool(true_condition(answer, "Ready"))),
        updated=1,
        old=0,
        settled=True,
        selector={},
        release=release_of(answer),
        **_of_pod(answer["spec"]),
    )


def _of_pod(spec: Answer) -> dict[str, Any]:
    """The fields of a Workload from its pod template."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    ports = [port for container in containers for port in container.get("ports") or ()]
    network = bool(spec.get("hostNetwork"))
    host = {port["containerPort"] if network else port.get("hostPort") for port in ports}
    mounts = [each["hostPath"] for each in spec.get("volumes") or () if each.get("hostPath")]
    return {
        "images": tuple(container.get("image") or "" for container in containers),
        "host_ports": tuple(sorted(port for port in host if port)),
        "ports": tuple(sorted({port["containerPort"] for port in ports})),
        "host_network": network,
        "host_paths": tuple(str(mount.get("path") or "") for mount in mounts),
        "placement": placement_of(spec),
    }


def placement_of(spec: Answer) -> Placement:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return Placement(
        node_selector=spec.get("nodeSelector") or {},
        terms=tuple(required.get("nodeSelectorTerms") or ()),
        tolerations=tuple(spec.get("tolerations") or ()),
        host_network=bool(spec.get("hostNetwork")),
    )


def parse_namespace(answer: Answer) -> Namespace:
    return Namespace(
        name=answer["metadata"]["name"],
        terminating=(answer.get("status") or {}).get("phase") == "Terminating",
        labels=answer["metadata"].get("labels") or {},
    )


def parse_node_ports(answer: Answer) -> list[NodePort]:
    """The node ports of one Service."""
    metadata = answer["metadata"]
    return [
        NodePort(metadata["namespace"], metadata["name"], port["nodePort"], release_of(answer))
        for port in answer["spec"].get("ports") or ()
        if port.get("nodePort")
    ]


def parse_api_services(items: Iterable[Answer]) -> dict[str, ApiService]:
    """The APIs that Services provide, by name. The API server's own APIs have no Service."""
    found = {}
    for item in items:
        service = item["spec"].get("service")
        if service:
            name = item["metadata"]["name"]
            ref = ObjectRef("Service", service["namespace"], service["name"])
            found[name] = ApiService(name, ref, release_of(item))
    return found


def parse_prometheus(answer: Answer) -> PrometheusInstance:
    metadata = answer["metadata"]
    return PrometheusInstance(metadata["namespace"], metadata["name"], answer.get("spec") or {})


def parse_cluster_policy(answer: Answer) -> ClusterPolicy:
    status = answer.get("status") or {}
    state = str(status.get("state") or "")
    kind = "Ready" if state == "ready" else "Error"  # set after the state, so both may be true
    why = true_condition(answer, kind)
    return ClusterPolicy(
        answer["metadata"]["name"],
        state,
        answer.get("spec") or {},
        release_of(answer),
        str(why.get("reason") or ""),
        str(why.get("message") or ""),
    )


def object_ref(answer: Answer, namespace: str = "") -> ObjectRef:
    """The name of an object. `namespace`: default for an object without one."""
    metadata = answer.get("metadata") or {}
    return ObjectRef(
        str(answer.get("kind") or ""),
        str(metadata.get("namespace") or namespace),
        str(metadata.get("name") or ""),
    )
