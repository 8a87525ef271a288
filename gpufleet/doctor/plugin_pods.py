"""Finds dead pods of NVIDIA's device plugin in the answers of an API server. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpufleet.core.names import count_noun
from gpufleet.core.visible import one_line
from gpufleet.doctor.models import Link, load_steps
from gpufleet.helm.chart_choice import load_charts
from gpufleet.kube.parse import parse_workload
from gpufleet.kube.pod_reasons import find_reasons, is_ready_or_done

Item = Mapping[str, Any]

STARTING_SECONDS = 120  # seconds for which a pod that is not Ready may still be starting
RESTART = "restart_plugin_pod"  # the step with the fix
CRASH_LOOP = "CrashLoopBackOff"


@dataclass(frozen=True, slots=True)
class DeadPod:
    """A pod of a device plugin that does not serve its node."""

    namespace: str
    name: str
    uid: str
    node: str
    why: str


@dataclass(frozen=True, slots=True)
class PluginPods:
    """The pods of a cluster's device plugin. `access`: the words by which kubectl reaches it."""

    total: int
    dead: tuple[DeadPod, ...]
    access: tuple[str, ...] = ()

    @property
    def link(self) -> Link | None:
        """The reading of the check of the plugin, None without a pod."""
        if not self.total:
            return None
        if not self.dead:
            return Link(f"{count_noun(self.total, 'pod')} Ready")
        first = self.dead[0]
        return Link(
            f"{len(self.dead)} of {self.total} not Ready",
            f"Pod {first.namespace}/{first.name} of the device plugin is not Ready ({first.why}): "
            "its node offers no GPUs to new pods.",
        )


def plugin_daemonsets(daemonsets: Iterable[Item]) -> dict[str, str]:
    """The DaemonSets of NVIDIA's device plugin: uid -> namespace."""
    fix = load_steps().steps[RESTART].fix
    images = set(fix.images if fix else ())
    is_plugin = load_charts().plugin_signs.fits
    works = ((each["metadata"], parse_workload("DaemonSet", each)) for each in daemonsets)
    return {
        about["uid"]: about["namespace"]
        for about, work in works
        if is_plugin(work) and images.intersection(work.image_names)
    }


def judge_plugin_pods(
    owners: Iterable[str],
    pods: Iterable[Item],
    now: int,
    patience: int | None,
    access: tuple[str, ...],
) -> PluginPods:
    """The pods of these DaemonSets, by uid. `patience`: as in `is_dead`. A pod without a node waits
    for the scheduler, and one that ends is replaced without help."""
    known = set(owners)
    own = [
        pod
        for pod in pods
        if known.intersection(each["uid"] for each in pod["metadata"].get("ownerReferences") or ())
        and not pod["metadata"].get("deletionTimestamp")
        and (pod.get("spec") or {}).get("nodeName")
    ]
    dead = tuple(_dead_pod(pod) for pod in own if is_dead(pod, now, patience))
    return PluginPods(len(own), dead, access)


def is_dead(pod: Item, now: int, patience: int | None) -> bool:
    """True if a pod crashes again and again, or is not Ready. `patience`: seconds for which it may
    still be starting, None if it should be Ready."""
    if is_ready_or_done(pod):
        return False
    return patience is None or _crashes(pod) or now - ready_changed(pod) > patience


def _crashes(pod: Item) -> bool:
    status = pod.get("status") or {}
    both = (status.get("initContainerStatuses") or (), status.get("containerStatuses") or ())
    waits = [(each.get("state") or {}).get("waiting") or {} for part in both for each in part]
    return any(wait.get("reason") == CRASH_LOOP for wait in waits)


def ready_changed(pod: Item) -> int:
    """When a pod became Ready, or was no longer: seconds since 1970, 0 if unknown."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready: Item = next((each for each in conditions if each["type"] == "Ready"), {})
    return seconds_of(ready.get("lastTransitionTime") or pod["metadata"].get("creationTimestamp"))


def seconds_of(time: object) -> int:
    """A time of the API in seconds since 1970, 0 if it is invalid."""
    try:
        return int(datetime.fromisoformat(str(time).replace("Z", "+00:00")).timestamp())
    except ValueError:
        return 0


def _dead_pod(pod: Item) -> DeadPod:
    about = pod["metadata"]
    reasons = find_reasons([pod], [])
    why = one_line(reasons[0].text) if reasons else "it gives no reason"
    return DeadPod(about["namespace"], about["name"], about["uid"], pod["spec"]["nodeName"], why)
