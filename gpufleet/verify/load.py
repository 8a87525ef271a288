"""One Job with the user's image that puts every free GPU of a cluster under load."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gpufleet.core.merge import value_at
from gpufleet.core.names import count_noun
from gpufleet.verify.checks import CheckFailed
from gpufleet.verify.cluster import RESOURCE, CheckedCluster
from gpufleet.verify.findings.clusters import LOAD_LEFT

LOAD_NAMESPACE = "default"
POLL_SECONDS = 1.0
PROGRESS_SECONDS = 15.0
TOLERATION = {"key": RESOURCE, "operator": "Exists", "effect": "NoSchedule"}
# The pod of a Job does not end while a proxy of a service mesh runs in it.
# https://linkerd.io/2/features/proxy-injection/ and
# https://istio.io/latest/docs/setup/additional-setup/sidecar-injection/ (read 2026-11-28)
NO_PROXY = {
    "labels": {"sidecar.istio.io/inject": "false"},
    "annotations": {"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled"},
}
KEPT_SECONDS = 3600  # for a finished Job, if the run is killed before it deletes the Job
NONE_FREE = "no GPU is free on a node whose taints the check's pods tolerate"
UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"  # percent; dcgm-exporter's name
# A part of a GPU (MIG) has no utilization, or 0 and 100 only. This is the same as a ratio.
# https://github.com/NVIDIA/dcgm-exporter/issues/341 and /430 (read 2026-11-28)
ENGINE_ACTIVE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
# labels that name the pod of a series: dcgm-exporter's, or renamed by Prometheus
POD_LABELS = (("namespace", "pod"), ("exported_namespace", "exported_pod"))


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """The keys `verify_load_*` of an inventory. `share`: busy time that each GPU must reach."""

    image: str
    command: tuple[str, ...]
    seconds: int = 120
    start_seconds: int = 600
    share: float = 0.9
    runtime_class: str | None = None
    tolerations: tuple[Mapping[str, Any], ...] = (TOLERATION,)

    @property
    def deadline(self) -> int:
        """Seconds after which the Job is stopped."""
        return self.start_seconds + 2 * self.seconds

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> LoadRequest:
        """Read the keys from an inventory's data. Raises ValueError for an invalid number."""
        given = {
            name: kind(data[f"verify_load_{name}"])
            for name, kind in {"seconds": int, "start_seconds": int, "share": float}.items()
            if f"verify_load_{name}" in data
        }
        return cls(
            image=str(data.get("verify_load_image") or ""),
            command=tuple(map(str, data.get("verify_load_command") or ())),
            runtime_class=data.get("device_plugin_runtime_class"),
            tolerations=gpu_tolerations(data),
            **given,
        )


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of the Job. `trouble`: why it did not succeed, or None."""

    job: str
    gpus: int
    trouble: str | None


def gpu_tolerations(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The plugin's tolerations for pods with GPUs. One without a key tolerates a cordon too, so it
    is left out."""
    return tuple(each for each in plugin_tolerations(data) if value_at(each, "key"))


def plugin_tolerations(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The usual toleration, and those that the inventory gives the device plugin."""
    operator = data.get("cluster_stack") == "gpu-operator"
    values = data.get("gpu_operator_values" if operator else "device_plugin_values")
    theirs = value_at(values, "daemonsets.tolerations" if operator else "tolerations")
    given = theirs if isinstance(theirs, list | tuple) else ()
    return (TOLERATION, *(each for each in given if isinstance(each, Mapping)))


def count_free_gpus(
    nodes: Iterable[Any],
    pods: Iterable[Any],
    tolerations: Iterable[Mapping[str, Any]] = (TOLERATION,),
) -> int:
    """The GPUs that a Job can get: those of schedulable nodes, minus those that pods hold.

    `nodes`, `pods`: V1Node and V1Pod of the whole cluster. Example: two nodes with 8 GPUs each, one
    of them cordoned, and a pod that holds 2 GPUs of the other node: 6. A node that is not Ready has
    a taint, so it is not schedulable either.
    """
    wanted = tuple(tolerations)
    open_nodes = {each.metadata.name: each for each in nodes if not _is_closed(each, wanted)}
    offered = sum(
        int((each.status.allocatable or {}).get(RESOURCE, 0)) for each in open_nodes.values()
    )
    held = sum(
        int((part.resources.limits or {}).get(RESOURCE, 0) if part.resources else 0)
        for pod in pods
        if pod.spec.node_name in open_nodes and pod.status.phase not in ("Succeeded", "Failed")
        for part in pod.spec.containers
    )
    return max(0, offered - held)


def _is_closed(node: Any, tolerations: Sequence[Mapping[str, Any]]) -> bool:
    """True if a pod with these tolerations cannot start on a node."""
    taints = node.spec.taints or ()
    return bool(node.spec.unschedulable) or any(repels_pods(taint, tolerations) for taint in taints)


def repels_pods(taint: Any, tolerations: Iterable[Mapping[str, Any]]) -> bool:
    """True if a V1Taint keeps pods with these tolerations away from its node."""
    return taint.effect != "PreferNoSchedule" and not any(
        each.get("key") in (None, "", taint.key)
        and each.get("effect") in (None, "", taint.effect)
        and (each.get("operator") == "Exists" or (each.get("value") or "") == (taint.value or ""))
        for each in tolerations
    )


def build_job(request: LoadRequest, gpus: int) -> dict[str, Any]:
    """The Job: one pod per GPU, placed by the scheduler."""
    container = {
        "name": "load",
        "image": request.image,
        "resources": {"limits": {RESOURCE: "1"}},
        "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}},  # needed by dcgmproftester
        **({"command": list(request.command)} if request.command else {}),
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "tolerations": list(request.tolerations),
        "containers": [container],
        **({"runtimeClassName": request.runtime_class} if request.runtime_class else {}),
    }
    labels = {"app.kubernetes.io/managed-by": "gpufleet"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"gpufleet-load-{secrets.token_hex(4)}", "labels": labels},
        "spec": {
            "completions": gpus,
            "parallelism": gpus,
            "backoffLimit": 0,
            "activeDeadlineSeconds": request.deadline,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {
                "metadata": {**NO_PROXY, "labels": {**labels, **NO_PROXY["labels"]}},
                "spec": pod,
            },
        },
    }


@contextmanager
def load_running(
    cluster: CheckedCluster, request: LoadRequest, report: Callable[[str], None]
) -> Iterator[LoadResult]:
    """Run the Job and yield its result. At the end, the Job and its pods are always deleted."""
    gpus = count_free_gpus(cluster.gpu_nodes, cluster.pods_now(), request.tolerations)
    cluster.need(gpus, NONE_FREE)
    body = build_job(request, gpus)
    name = body["metadata"]["name"]
    try:
        cluster.ask(cluster.batch.create_namespaced_job, LOAD_NAMESPACE, body)
        yield LoadResult(name, gpus, _wait(cluster, name, gpus, request, report))
    finally:
        call = cluster.batch.delete_namespaced_job
        left = cluster.delete(call, name, LOAD_NAMESPACE, propagation_policy="Background")
        if left:
            report(f"{LOAD_LEFT.code} {LOAD_LEFT.title}: {name}: {left}")


def _wait(
    cluster: CheckedCluster,
    name: str,
    gpus: int,
    request: LoadRequest,
    report: Callable[[str], None],
) -> str | None:
    """Wait until the Job ends. Returns why it did not succeed, or None."""
    end, reported = time.monotonic() + request.deadline, 0.0
    while True:
        job = cluster.find(cluster.batch.read_namespaced_job, name, LOAD_NAMESPACE)
        if job is None:
            return "another user deleted the Job"
        done = job.status.succeeded or 0
        if done >= gpus:
            return None
        finished = f"{done} of {count_noun(gpus, 'pod')} finished"
        failed = [each for each in job.status.conditions or () if each.type == "Failed"]
        left = end - time.monotonic()
        if failed or left <= 0:
            why = failed[0].message if failed else f"{finished} in time"
            return "; ".join(filter(None, [str(why), last_event(cluster, name)]))
        if time.monotonic() - reported >= PROGRESS_SECONDS:
            report(f"load test: {finished} ({left:.0f} s left)")
            reported = time.monotonic()
        time.sleep(POLL_SECONDS)


def last_event(cluster: CheckedCluster, name: str) -> str:
    """The last warning event about a Job or its pods, such as an image that is not found."""
    try:
        events = cluster.listed(cluster.core.list_namespaced_event, LOAD_NAMESPACE)
    except CheckFailed:
        return ""
    found = [
        each for each in events
        if each.type == "Warning" and each.involved_object.name.startswith(name)
    ]  # fmt: skip
    return str(found[-1].message) if found else ""


def _node_of(labels: Mapping[str, str]) -> str:
    """The node of a series, or its GPU's UUID: exporters and scrape configs have other labels."""
    names = ("node", "kubernetes_node", "hostname", "Hostname", "UUID")
    return next((labels[name] for name in names if labels.get(name)), "?")


def _gpu_of(labels: Mapping[str, str]) -> str:
    """The GPU of a series, or the part of it under MIG, with its node."""
    part = f", MIG instance {labels['GPU_I_ID']}" if labels.get("GPU_I_ID") else ""
    return f"{_node_of(labels)} GPU {labels.get('gpu', '?')}{part}"


def find_idle_gpus(
    cluster: CheckedCluster, result: LoadResult, request: LoadRequest
) -> list[str] | str:
    """The GPUs of the Job's pods that were busy for less than the wanted share, by Prometheus, or
    why Prometheus did not answer."""
    where = [f'{n}="{LOAD_NAMESPACE}",{p}=~"{result.job}-.*"' for n, p in POD_LABELS]
    spans = [
        f"{scale} * quantile_over_time(0.5, {name}{{{part},{each}}}[{request.deadline}s])"
        for scale, name, part in (
            (1, UTILIZATION, 'GPU_I_ID=""'), (100, ENGINE_ACTIVE, 'GPU_I_ID!=""'),
        )
        for each in where
    ]  # fmt: skip
    answer = cluster.prometheus(" or ".join(spans))
    if isinstance(answer, str):
        return answer
    if not answer:
        return f"it has no {UTILIZATION} of the Job's pods (under MIG: {ENGINE_ACTIVE})"
    percent = {_gpu_of(series["metric"]): float(series["value"][1]) for series in answer}
    least = 100 * request.share
    return [f"{gpu}: busy {value:.0f} %" for gpu, value in sorted(percent.items()) if value < least]
