"""The operations on the exporter's list of counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import Any

from pyinfra import host

from gpufleet.core.merge import merged
from gpufleet.host.operation import Commands
from gpufleet.kube.facts import ObjectRef, ReleaseRef
from gpufleet.kube.helm_releases import mentions
from gpufleet.kube.objects import ObjectSet
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.boundary import cluster_operation, write
from gpufleet.kube.operations.gather import history_of
from gpufleet.kube.operations.objects import NEEDED, STALE, live_objects, pending, written

RESTORED = "gpufleet/restored"  # annotation: when a list that others changed was put back


@cluster_operation
def apply_list(api: ClusterApi, wanted: ObjectSet, exporters: Sequence[ObjectRef]) -> Commands:
    """
    Write the ConfigMap with the exporter's list, and restart exporters that may have read another.

    A new list has a new name, and restarts them through the release. One that others changed is put
    back and marked in one write; exporters without that mark restart, also after a killed run.

    + api: of the cluster
    + wanted: the ConfigMap
    + exporters: DaemonSets of the release
    """
    live = live_objects(api, wanted)
    marks = {body["metadata"]["name"]: _mark(body) for body in live}
    found = pending(api, wanted, live, NEEDED)
    for change in found:
        if change.action == "change":
            mark = datetime.now(timezone.utc).isoformat(timespec="seconds")
            marks[change.name] = mark
            marked = merged(change.body, {"metadata": {"annotations": {RESTORED: mark}}})
            change = replace(change, body=marked)
        yield written(api, wanted, change)
    late = []
    for name in wanted.labelled():
        if marks.get(name):
            late += [(ref, name) for ref in exporters if _is_late(api, ref, name, marks[name])]
    for ref, name in late:
        template = {"metadata": {"annotations": {RESTORED: marks[name]}}}
        restart = partial(api.merge, _path(ref), {"spec": {"template": template}})
        yield write(f"restart {ref}", restart)
    if not found and not late:
        host.noop("the exporter's list of counters is up to date")


@cluster_operation
def remove_lists(api: ClusterApi, wanted: ObjectSet, release: ReleaseRef) -> Commands:
    """
    Remove the ConfigMaps that neither the plan nor a stored revision of the release names.

    `helm rollback` to a revision starts pods that mount its ConfigMap.

    + api: of the cluster
    + wanted: the ConfigMap of the plan, if it has one
    + release: the exporter's
    """
    stale = pending(api, wanted, live_objects(api, wanted), STALE)
    history = history_of(release)
    revisions = api.list(history.path, **history.query) if stale else []
    gone = [each for each in stale if not any(mentions(one, each.name) for one in revisions)]
    if not gone:
        host.noop("every list of counters is in use")
    for change in gone:
        yield written(api, wanted, change)


def _mark(body: Any) -> str:
    return str((body["metadata"].get("annotations") or {}).get(RESTORED) or "")


def _is_late(api: ClusterApi, ref: ObjectRef, name: str, mark: str) -> bool:
    """Whether the pods of a DaemonSet mount the ConfigMap, and were not started for its mark."""
    live = api.find(_path(ref))
    if live is None:
        return False
    template = live["spec"]["template"]
    volumes = template["spec"].get("volumes") or ()
    maps = [(each.get("configMap") or {}).get("name") for each in volumes]
    return name in maps and _mark(template) != mark


def _path(ref: ObjectRef) -> str:
    return f"/apis/apps/v1/namespaces/{ref.namespace}/daemonsets/{ref.name}"
