"""Explain why pods are not ready, from their states and events. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from gpufleet.core.names import counted
from gpufleet.kube.parse import Answer, condition

_IMAGE = ("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull")
_EVENTS = ("FailedCreate", "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox",
           "Unhealthy", "FailedScheduling", "ExceededGracePeriod", "BackoffLimitExceeded",
           "DeadlineExceeded", "ProvisioningFailed", "FailedBinding")  # fmt: skip
_STAY = ("ProvisioningFailed", "FailedBinding")  # of a claim: no such storage class, or no volume
_MADE = re.compile(r'pods? "[^"]+"')  # a name that changes at every attempt
SHOWN = 400  # characters of one message
# In all refusals of the admission plugin ResourceQuota: exceeded quota, failed quota, insufficient
# quota to match these scopes. FailedCreate has no reason of its own for them.
# https://github.com/kubernetes/apiserver/tree/master/pkg/admission/plugin/resourcequota
# (controller.go, read 2026-11-27)
QUOTA = "quota"
POD_SECURITY = "violates PodSecurity"  # pod-security-admission/admission/admission.go
_FINAL = ("insufficient quota to match these scopes", POD_SECURITY)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why pods are not ready. `stays`: unlikely to resolve by itself. `final`: it cannot resolve by
    itself."""

    text: str
    stays: bool = False
    final: bool = False
    pods: int = 1

    def __str__(self) -> str:
        return f"{counted(self.pods, 'pod')}: {self.text}" if self.pods > 1 else self.text


def reasons(pods: Iterable[Answer], events: Iterable[Answer], since: str = "") -> list[Reason]:
    """Unique reasons, the most certain first.

    `pods`: those of the workloads that are not ready. `events`: of these pods and of their
    controllers, oldest first. `since`: what was reported before this time may be over.
    """
    found: dict[str, Reason] = {}
    for pod in pods:
        for reason in () if is_ready(pod) else _of_pod(pod):
            known = found.get(reason.text)
            found[reason.text] = replace(reason, pods=known.pods + 1) if known else reason
    for event in reversed(list(events)):
        cause = _of_event(event)
        if cause and event_time(event) < since:
            cause = replace(cause, stays=False, final=False)
        if cause and not any(cause.text in text or text in cause.text for text in found):
            found[cause.text] = cause
    return list(found.values())


@dataclass(slots=True)
class Stuck:
    """Whether a persistent reason has lasted for `patience` seconds."""

    patience: int
    began: float | None = field(default=None, init=False)

    def after(self, why: Sequence[Reason], seconds: float) -> bool:
        """Whether to give up `seconds` after the wait began, with the current reasons."""
        if any(reason.final for reason in why):
            return True
        if not any(reason.stays for reason in why):
            self.began = None
            return False
        if self.began is None:
            self.began = seconds
        return seconds - self.began >= self.patience


def failed_jobs(jobs: Iterable[Answer]) -> list[str]:
    """Messages about failed Jobs."""
    return [
        f"Job {job['metadata']['name']} failed: {_words(failed)}"
        for job in jobs
        if (failed := condition(job, "Failed"))
    ]


def claims_of(pods: Iterable[Answer]) -> list[str]:
    """The PersistentVolumeClaims of pods."""
    return [
        str(volume["persistentVolumeClaim"].get("claimName"))
        for pod in pods
        for volume in (pod.get("spec") or {}).get("volumes") or ()
        if volume.get("persistentVolumeClaim")
    ]


def is_ready(pod: Answer) -> bool:
    succeeded = (pod.get("status") or {}).get("phase") == "Succeeded"
    return succeeded or bool(condition(pod, "Ready"))


def _of_pod(pod: Answer) -> Iterator[Reason]:
    status = pod.get("status") or {}
    for about in status.get("conditions") or ():
        if about["type"] == "PodScheduled" and about["status"] == "False":
            message = about.get("message") or about.get("reason") or "no reason given"
            yield Reason(f"cannot be scheduled: {_short(message)}")
    if status.get("phase") == "Failed":
        said = status.get("message") or status.get("reason") or "no reason given"
        yield Reason(f"failed: {_short(said)}")
    for name in _running_first(pod):
        yield Reason(f"waiting for init container {name}")
    containers = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    for container in containers:
        yield from _of_container(container)


def _running_first(pod: Answer) -> Iterator[str]:
    """Names of running init containers, which must finish before the others start."""
    first = (pod.get("spec") or {}).get("initContainers") or ()
    beside = {container["name"] for container in first if container.get("restartPolicy")}
    for container in (pod.get("status") or {}).get("initContainerStatuses") or ():
        if (container.get("state") or {}).get("running") and container["name"] not in beside:
            yield container["name"]


def _of_container(container: Answer) -> Iterator[Reason]:
    name = container["name"]
    state = container.get("state") or {}
    waiting = state.get("waiting") or {}
    reason = waiting.get("reason") or ""
    message = _short(waiting.get("message") or "")
    ended = (container.get("lastState") or {}).get("terminated") or state.get("terminated")
    if reason in _IMAGE:
        image = container.get("image")
        yield Reason(f"the image {image} cannot be pulled ({reason}: {message})", stays=True)
    elif ended and (reason == "CrashLoopBackOff" or ended.get("exitCode")):
        code = f"exit code {ended.get('exitCode')}, {ended.get('reason') or 'no reason given'}"
        times = container.get("restartCount", 0)
        said = f": {_short(ended['message'])}" if ended.get("message") else ""
        yield Reason(
            f"container {name} crashes ({code}, {counted(times, 'restart')}){said}", stays=True
        )
    elif reason and reason not in ("ContainerCreating", "PodInitializing"):
        yield Reason(f"container {name} does not start ({_both(reason, message)})", stays=True)


def _of_event(event: Answer) -> Reason | None:
    if event.get("reason") not in _EVENTS:
        return None
    about = event.get("involvedObject") or {}
    message = _short(_MADE.sub("pods", str(event.get("message") or "")))
    if about.get("kind") == "Pod":
        return Reason(f"{event['reason']}: {message}")
    refused = event["reason"] == "FailedCreate" and ("is forbidden" in message or QUOTA in message)
    final = refused and any(text in message for text in _FINAL)
    stays = refused or event["reason"] in _STAY
    return Reason(f"{about.get('kind')} {about.get('name')}: {message}", stays, final)


def event_time(event: Answer) -> str:
    """When an event was last seen; times of the API compare as text."""
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def _words(failed: Answer) -> str:
    return _short(_both(failed.get("reason") or "", failed.get("message") or ""))


def _both(reason: str, message: str) -> str:
    return f"{reason}: {message}" if reason and message else reason or message


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
