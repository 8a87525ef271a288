"""Why pods are not ready, from their states and events. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpufleet.core.names import count_noun
from gpufleet.kube.parse import true_condition

Item = Mapping[str, Any]

IMAGE = ("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull")
STARTING_REASONS = ("", "ContainerCreating", "PodInitializing")
GENERATED_PARTS = {"ReplicaSet": 1, "Pod": 2}  # kind -> parts at the end of a name, at most
MAX_CHARS = 400  # of one message
MAX_REASON_NODES = 3  # nodes that a reason names
_MADE = re.compile(r'pods? "[^"]+"')  # a name that changes with every attempt
# Part of all refusals of the admission plugin ResourceQuota: exceeded quota, failed quota,
# insufficient quota to match these scopes. FailedCreate does not distinguish them.
# https://github.com/kubernetes/apiserver/tree/master/pkg/admission/plugin/resourcequota
# (controller.go, read 2026-11-27)
QUOTA_MESSAGE = "quota"
POD_SECURITY_MESSAGE = "violates PodSecurity"  # pod-security-admission/admission/admission.go
# Parts of refusals that waiting does not resolve. The second one is a webhook's, such as that of
# Gatekeeper or Kyverno: https://github.com/kubernetes/apiserver/tree/master/pkg/admission/plugin/
# webhook/errors (statuserror.go, read 2026-11-28)
REFUSED_POD = ("is forbidden", "denied the request", QUOTA_MESSAGE)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a pod is not ready or does not exist. `stays`: waiting is unlikely to resolve it."""

    text: str
    stays: bool = False


def is_about(involved: Item, names: Collection[str]) -> bool:
    """True if the object of an event has one of these names, or is a ReplicaSet or pod of an object
    that has; the pod may be gone. Example: ReplicaSet web-7d8f is of web; Deployment web-ui is not.
    """
    name = str(involved.get("name"))
    for _ in range(GENERATED_PARTS.get(str(involved.get("kind")), 0)):
        if name in names:
            return True
        name = name.rpartition("-")[0]
    return name in names


def find_reasons(pods: Iterable[Item], events: Sequence[Item], since: str = "") -> list[Reason]:
    """The last reason of each pod that is not ready, is gone or cannot be created, and of failed
    Jobs. Each text appears once, with its nodes. `events`: warnings about the pods and their
    controllers, oldest first. `since`: older warnings may already be resolved."""
    said = {
        (str(about.get("kind")), str(about.get("name"))): event
        for event in events
        for about in [event.get("involvedObject") or {}]
    }
    known = {("Pod", str(pod["metadata"]["name"])): pod for pod in pods}
    found: dict[Reason, list[str]] = {}  # reason -> the node of each pod, or ""
    for pod in known.values():
        if not is_ready_or_done(pod) and (why := _why(pod, said)):
            found.setdefault(why, []).append(str((pod.get("spec") or {}).get("nodeName") or ""))
    for (kind, name), event in said.items():
        message = shorten_reason(event.get("message"))
        if event.get("reason") == "FailedCreate" or kind == "Job":
            stays = any(part in message for part in REFUSED_POD) and event_time(event) >= since
            why = Reason(f"{kind} {name}: {_MADE.sub('pods', message)}", stays)
            found.setdefault(why, []).append("")
        elif event.get("reason") == "Failed" and (kind, name) not in known:
            found.setdefault(Reason(message), []).append("")
    return [Reason(_placed(why.text, nodes), why.stays) for why, nodes in found.items()]


def _placed(text: str, nodes: Sequence[str]) -> str:
    """A reason with the number of its pods and their nodes: one node of many may be the cause."""
    named = sorted({node for node in nodes if node})
    shown = ", ".join(named[:MAX_REASON_NODES]) + (", …" if len(named) > MAX_REASON_NODES else "")
    if len(nodes) == 1:
        return f"node {shown}: {text}" if shown else text
    return f"{count_noun(len(nodes), 'pod')}{f' ({shown})' if shown else ''}: {text}"


def is_ready_or_done(pod: Item) -> bool:
    succeeded = (pod.get("status") or {}).get("phase") == "Succeeded"
    return succeeded or bool(true_condition(pod, "Ready"))


def event_time(event: Item) -> str:
    """The last time an event was seen. Times of the API can be compared as text."""
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def shorten_reason(text: object) -> str:
    """A message on one line."""
    line = " ".join(str(text or "no reason given").split())
    return line if len(line) <= MAX_CHARS else line[: MAX_CHARS - 1] + "…"


def _why(pod: Item, said: Mapping[tuple[str, str], Item]) -> Reason | None:
    """The reason of a pod: from a container, the scheduler, or its last event."""
    status = pod.get("status") or {}
    first = status.get("initContainerStatuses") or ()
    for container in (*first, *(status.get("containerStatuses") or ())):
        if reason := _why_container(container):
            return reason
    for about in status.get("conditions") or ():
        if about["type"] == "PodScheduled" and about["status"] == "False":
            why = about.get("message") or about.get("reason")
            return Reason(f"cannot be scheduled: {shorten_reason(why)}")
    if status.get("phase") == "Failed":
        return Reason(f"failed: {shorten_reason(status.get('message') or status.get('reason'))}")
    if event := said.get(("Pod", str(pod["metadata"]["name"]))):
        return Reason(f"{event.get('reason')}: {shorten_reason(event.get('message'))}")
    running = [each["name"] for each in first if (each.get("state") or {}).get("running")]
    return Reason(f"waiting for init container {running[0]}") if running else None


def _why_container(container: Item) -> Reason | None:
    name, state = container["name"], container.get("state") or {}
    waiting = state.get("waiting") or {}
    reason = waiting.get("reason") or ""
    ended = (container.get("lastState") or {}).get("terminated") or state.get("terminated")
    why = f"{reason}: {shorten_reason(waiting.get('message'))}"
    if reason in IMAGE:
        return Reason(f"the image {container.get('image')} cannot be pulled ({why})", stays=True)
    if ended and (reason == "CrashLoopBackOff" or ended.get("exitCode")):
        times = count_noun(container.get("restartCount", 0), "restart")
        exited = f"exit code {ended.get('exitCode')}, {ended.get('reason')}, {times}"
        said = f": {shorten_reason(ended['message'])}" if ended.get("message") else ""
        return Reason(f"container {name} crashes ({exited}){said}", stays=True)
    if reason not in STARTING_REASONS:
        return Reason(f"container {name} does not start ({why})", stays=True)
    return None
