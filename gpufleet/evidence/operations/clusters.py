"""Collects the evidence of a cluster: nodes, and pods, events and logs of gpufleet's namespaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any

from gpufleet.core.secrets import without_secrets
from gpufleet.core.stopped import Stopped
from gpufleet.evidence.archive import EvidenceArchive
from gpufleet.evidence.models import Evidence, EvidenceFile, MissingEvidence
from gpufleet.evidence.objects import Item, WantedLog, choose_logs, event_lines, objects_text
from gpufleet.gpu_stack.model import our_releases
from gpufleet.gpu_stack.settings import ClusterSettings, load_cluster_settings
from gpufleet.kube.findings import WRONG_CLUSTER
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError

ODD_ANSWERS = (AttributeError, KeyError, TypeError, ValueError, RecursionError)


def collect_cluster(archive: EvidenceArchive, name: str, data: Mapping[str, Any]) -> None:
    """Store the evidence of a cluster of the inventory. Raises nothing. `data`: its data there."""
    folder = f"clusters/{name}"
    settings, problems = load_cluster_settings(data)
    if settings is None:
        archive.note_lost(folder, "; ".join(found.text for found in problems))
        return
    wanted = settings.cluster
    try:
        with closing(ClusterApi(KubeAccess(wanted.kubeconfig or "", wanted.context or ""))) as api:
            _require_cluster(api, wanted.uid or "")
            archive.add(folder, _evidence(api, settings))
    except Stopped as stopped:
        archive.note_lost(folder, _why(stopped))
    except ODD_ANSWERS as error:
        archive.note_lost(folder, _unexpected(error))


def _require_cluster(api: ClusterApi, uid: str) -> None:
    """Raises ClusterProblem if the kubeconfig leads to another cluster than the inventory's."""
    if not uid:
        return
    found = api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    if found != uid:
        raise ClusterProblem(
            WRONG_CLUSTER(context=api.context, url=api.url, found=found, wanted=uid)
        )


def _evidence(api: ClusterApi, settings: ClusterSettings) -> Iterator[Evidence]:
    pods: list[Item] = []
    nodes = "/api/v1/nodes"
    yield _read("nodes.json", nodes, partial(_list_objects, api, nodes, []))
    for namespace in dict.fromkeys(ref.namespace for ref in our_releases(settings)):
        path = f"/api/v1/namespaces/{namespace}"
        listed = partial(_list_objects, api, f"{path}/pods", pods)
        yield _read(f"{namespace}/pods.json", f"{path}/pods", listed)
        events = partial(_list_events, api, f"{path}/events")
        yield _read(f"{namespace}/events.txt", f"{path}/events", events)
    yield from _logs(api, pods)


def _list_objects(api: ClusterApi, path: str, seen: list[Item]) -> tuple[str, str]:
    """The objects at a path as text, and a note. They are added to `seen`."""
    found = api.list(path)
    seen.extend(found)
    return objects_text(found)


def _list_events(api: ClusterApi, path: str) -> tuple[str, str]:
    lines = event_lines(api.list(path)).splitlines(keepends=True)
    return "".join(map(without_secrets, lines)), ""


def _read_log(api: ClusterApi, log: WantedLog) -> tuple[str, str]:
    return api.read_log(log.path, **log.query), ""


def _logs(api: ClusterApi, pods: list[Item]) -> Iterator[Evidence]:
    logs, left_out = choose_logs(pods)
    for log in logs:
        yield _read(log.name, log.path, partial(_read_log, api, log))
    if left_out:
        yield MissingEvidence("logs", f"{left_out} more: only the first {len(logs)} are read")


def _read(name: str, path: str, read: Callable[[], tuple[str, str]]) -> Evidence:
    """One file of a cluster, or why it could not be read. `read`: its text, and a note."""
    try:
        text, note = read()
    except ApiError as refused:
        return MissingEvidence(name, _why(refused))
    except ODD_ANSWERS as error:
        return MissingEvidence(name, _unexpected(error))
    if not text.strip():
        return MissingEvidence(name, "it is empty")
    return EvidenceFile(name, text, f"GET {path}", note)


def _unexpected(error: Exception) -> str:
    return f"an unexpected response: {type(error).__name__}"


def _why(stopped: Stopped) -> str:
    return "; ".join(found.text for found in stopped.findings)
