"""The operation on the exporter's list of counters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from functools import partial

from pyinfra import host

from gpufleet.gpu_stack.counters import CHECKSUM
from gpufleet.host.operation import Commands
from gpufleet.kube.facts import ObjectRef
from gpufleet.kube.objects import ObjectSet
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.boundary import cluster_operation, write
from gpufleet.kube.operations.objects import pending, written

RESTARTED = "kubectl.kubernetes.io/restartedAt"  # as `kubectl rollout restart` does it


@cluster_operation
def apply_list(api: ClusterApi, wanted: ObjectSet, exporters: Sequence[ObjectRef]) -> Commands:
    """
    Write the ConfigMap with the exporter's list, and restart exporters that may have read another.

    A new list restarts them through the release, whose pods have its fingerprint. Where that
    stays the same, the ConfigMap was changed by others, and pods read it at their start only.

    + api: of the cluster
    + wanted: the ConfigMap
    + exporters: DaemonSets of the release
    """
    found = pending(api, wanted)
    if not found:
        host.noop("the exporter's list of counters is up to date")
        return
    for change in found:
        yield written(api, wanted, change)
    if any(change.action == "change" for change in found):
        for ref in exporters:
            yield write(f"restart {ref}", partial(_restart, api, wanted, ref))


def _restart(api: ClusterApi, wanted: ObjectSet, ref: ObjectRef) -> None:
    """Restart a DaemonSet whose pods have the fingerprint of this list."""
    [config_map] = wanted.objects
    path = f"/apis/apps/v1/namespaces/{ref.namespace}/daemonsets/{ref.name}"
    live = api.find(path)
    about = live["spec"]["template"]["metadata"] if live else {}
    fingerprint = config_map["metadata"]["annotations"][CHECKSUM]
    if (about.get("annotations") or {}).get(CHECKSUM) != fingerprint:
        return
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    pods = {"metadata": {"annotations": {RESTARTED: now}}}
    api.merge(path, {"spec": {"template": pods}})
