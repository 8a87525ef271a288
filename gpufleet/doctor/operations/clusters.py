"""Reads a cluster's pods for GPUs and its nodes, and restarts dead pods of the device plugin."""

from __future__ import annotations

import time
from collections.abc import Iterable

from gpufleet.doctor.cluster_links import ReadCluster, read_offered
from gpufleet.doctor.plugin_pods import (
    EXPORTER,
    PLUGIN,
    STARTING_SECONDS,
    DeadPod,
    exporter_daemonsets,
    is_dead,
    judge_pods,
    plugin_daemonsets,
)
from gpufleet.kube.node_answers import parse_node
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError

SETTLE_SECONDS = 60.0  # seconds in which a new pod must be Ready
POD_POLL_SECONDS = 2.0  # seconds between two reads of it
CALM_READS = 5  # reads in a row without a dead pod: one that crashes is Ready for a moment
CONFLICT = 409  # another pod has its name


def read_cluster_gpus(access: KubeAccess) -> ReadCluster:
    """The pods for GPUs, and the nodes, now. Raises ClusterProblem."""
    api = ClusterApi(access)
    try:
        return _read(api, access, STARTING_SECONDS)
    finally:
        api.close()


def restart_plugin_pods(access: KubeAccess, pods: Iterable[DeadPod]) -> ReadCluster:
    """Delete those of the pods that are still dead, and wait for their successors. Returns what is
    there then. Raises ClusterProblem."""
    api = ClusterApi(access)
    try:
        for pod in pods:
            _delete(api, pod)
        return _settled(api, access)
    finally:
        api.close()


def _read(api: ClusterApi, access: KubeAccess, patience: int | None) -> ReadCluster:
    sets, now = api.list("/apis/apps/v1/daemonsets"), int(time.time())
    plugins, exporters = plugin_daemonsets(sets), exporter_daemonsets(sets)
    spaces = sorted({work.namespace for work in (plugins | exporters).values()})
    pods = [pod for space in spaces for pod in api.list(f"/api/v1/namespaces/{space}/pods")]
    where = (("--kubeconfig", access.kubeconfig), ("--context", access.context))
    plugin = judge_pods(PLUGIN, plugins, pods, now, patience)
    return ReadCluster(
        plugin,
        judge_pods(EXPORTER, exporters, pods, now, patience),
        read_offered(api.list("/api/v1/nodes", "application/json", parse_node), plugin),
        tuple(word for pair in where if pair[1] for word in pair),
    )


def _delete(api: ClusterApi, pod: DeadPod) -> None:
    """Delete a pod, unless it is another one by now, or Ready. Raises ClusterProblem."""
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
    found = api.find(path)
    if found is None or not is_dead(found, int(time.time()), STARTING_SECONDS):
        return
    only = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}}
    try:
        api.delete(path, only)
    except ApiError as error:
        if not error.is_missing and error.status != CONFLICT:
            raise


def _settled(api: ClusterApi, access: KubeAccess) -> ReadCluster:
    """The cluster once no pod of the plugin has been dead for some reads, or when the time is
    over."""
    end, calm = time.monotonic() + SETTLE_SECONDS, 0
    while True:
        found = _read(api, access, None)
        calm = 0 if found.plugin.dead or not found.plugin.total else calm + 1
        if calm == CALM_READS or time.monotonic() >= end:
            return found
        time.sleep(POD_POLL_SECONDS)
