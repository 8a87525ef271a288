"""Why pods do not get ready: from their states and their events to sentences. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Answer = Mapping[str, Any]

_IMAGE = ("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull")
_EVENTS = ("FailedCreate", "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox",
           "Unhealthy", "FailedScheduling", "ExceededGracePeriod", "BackoffLimitExceeded",
           "DeadlineExceeded")  # fmt: skip
_MADE = re.compile(r'pods? "[^"]+"')  # a name that is another one at every attempt
SHOWN = 400  # characters of one message


def reasons(pods: Iterable[Answer], events: Iterable[Answer]) -> list[str]:
    """Sentences, each once, with the number of pods it holds for; the surest causes first.

    `pods`: those of the workloads that are not ready. `events`: those of these pods and of what
    makes them, newest last.
    """
    counts: dict[str, int] = {}
    for pod in pods:
        if not is_ready(pod):
            for sentence in _of_pod(pod):
                counts[sentence] = counts.get(sentence, 0) + 1
    found = [f"{number} pods: {text}" if number > 1 else text for text, number in counts.items()]
    for event in events:
        text = _of_event(event)
        if text and not any(text in known or known in text for known in found):
            found.append(text)
    return found


def failed_jobs(jobs: Iterable[Answer]) -> list[str]:
    """Sentences about Jobs that ended in failure."""
    return [
        f"Job {job['metadata']['name']} failed: {_words(condition)}"
        for job in jobs
        for condition in (job.get("status") or {}).get("conditions") or ()
        if condition["type"] == "Failed" and condition["status"] == "True"
    ]


def is_ready(pod: Answer) -> bool:
    status = pod.get("status") or {}
    if status.get("phase") == "Succeeded":
        return True
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in status.get("conditions") or ()
    )


def _of_pod(pod: Answer) -> Iterator[str]:
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            yield f"cannot be scheduled: {_short(condition.get('message') or condition['reason'])}"
    if status.get("phase") == "Failed":
        said = status.get("message") or status.get("reason") or "no reason given"
        yield f"failed: {_short(said)}"
    containers = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    for container in containers:
        yield from _of_container(container)


def _of_container(container: Answer) -> Iterator[str]:
    name = container["name"]
    state = container.get("state") or {}
    waiting = state.get("waiting") or {}
    reason = waiting.get("reason") or ""
    message = _short(waiting.get("message") or "")
    ended = (container.get("lastState") or {}).get("terminated") or state.get("terminated")
    if reason in _IMAGE:
        yield f"the image {container.get('image')} cannot be pulled ({reason}: {message})"
    elif ended and (reason == "CrashLoopBackOff" or ended.get("exitCode")):
        code = f"exit code {ended.get('exitCode')}, {ended.get('reason') or 'no reason given'}"
        times = container.get("restartCount", 0)
        said = f": {_short(ended['message'])}" if ended.get("message") else ""
        yield f"container {name} crashes ({code}, {times} restarts){said}"
    elif reason and reason not in ("ContainerCreating", "PodInitializing"):
        yield f"container {name} does not start ({reason}{': ' if message else ''}{message})"


def _of_event(event: Answer) -> str:
    if event.get("type") != "Warning" or event.get("reason") not in _EVENTS:
        return ""
    about = event.get("involvedObject") or {}
    message = _short(_MADE.sub("pods", str(event.get("message") or "")))
    kind = about.get("kind") or "object"
    if kind == "Pod":
        return f"{event['reason']}: {message}"
    return f"{kind} {about.get('name')}: {message}"


def _words(condition: Answer) -> str:
    reason, message = condition.get("reason") or "", condition.get("message") or ""
    return _short(f"{reason}: {message}" if reason and message else reason or message)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
