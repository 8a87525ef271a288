"""Formats objects of a cluster as evidence, and chooses logs of pods. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from gpufleet.core.merge import without_value
from gpufleet.core.secrets import without_secrets
from gpufleet.kube.parse import true_condition

MAX_OBJECTS_CHARS = 8 << 20  # of the objects of one kind
MAX_POD_LOGS = 60  # containers of one cluster whose logs are read
MAX_POD_LOG_BYTES = 262_144
MAX_POD_LOG_LINES = 500
_NOISE = (
    ("metadata", "managedFields"),
    ("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"),
    ("status", "images"),  # of a node: every image that it has
)
Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WantedLog:
    """The log of a container. `previous`: of its run before the last restart."""

    namespace: str
    pod: str
    container: str
    previous: bool

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.pod}/log"

    @property
    def query(self) -> dict[str, str]:
        limits = {"tailLines": str(MAX_POD_LOG_LINES), "limitBytes": str(MAX_POD_LOG_BYTES)}
        return {**limits, "container": self.container, "previous": str(self.previous).lower()}

    @property
    def name(self) -> str:
        end = ".previous.log" if self.previous else ".log"
        return f"{self.namespace}/logs/{self.pod}/{self.container}{end}"


def objects_text(items: Sequence[Item]) -> tuple[str, str]:
    """Objects as JSON without secrets, and a note if some are left out."""
    texts: list[str] = []
    size = 0
    for item in items:
        text = json.dumps(without_secrets(reduce(without_value, _NOISE, item)), indent=1)
        size += len(text)
        if size > MAX_OBJECTS_CHARS:
            break
        texts.append(text)
    note = f"the first {len(texts)} of {len(items)}" if len(texts) < len(items) else ""
    return "[" + ",\n".join(texts) + "]\n", note


def event_lines(events: Iterable[Item]) -> str:
    """Events, the oldest first, one per line: time, type, object, reason, message."""
    rows = []
    for event in events:
        about = event.get("involvedObject") or {}
        when = event.get("lastTimestamp") or event.get("eventTime")
        what = f"{about.get('kind')}/{about.get('name')}"
        words = (when, event.get("type"), what, event.get("reason"), event.get("message"))
        rows.append(" ".join(" ".join(str(word or "-").split()) for word in words))
    return "".join(f"{row}\n" for row in sorted(rows))


def choose_logs(pods: Sequence[Item]) -> tuple[list[WantedLog], int]:
    """The logs to read, those of pods that are not ready first, and the number left out."""
    found = [log for pod in sorted(pods, key=_is_ready) for log in _logs_of(pod)]
    return found[:MAX_POD_LOGS], max(len(found) - MAX_POD_LOGS, 0)


def _is_ready(pod: Item) -> bool:
    status = pod.get("status") or {}
    done = status.get("phase") == "Succeeded"
    return done or bool(true_condition(pod, "Ready"))


def _logs_of(pod: Item) -> list[WantedLog]:
    """The logs of the containers that have begun; for restarted ones, of the last run, too."""
    about, status = pod["metadata"], pod.get("status") or {}
    states = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    return [
        WantedLog(about["namespace"], about["name"], state["name"], previous)
        for state in states
        if not (state.get("state") or {}).get("waiting") or state.get("restartCount")
        for previous in ((False, True) if state.get("restartCount") else (False,))
    ]
