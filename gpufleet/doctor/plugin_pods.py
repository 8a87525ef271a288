"""Finds dead pods of NVIDIA's device plugin and exporter in the answers of an API server. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.core.names import count_noun
from gpufleet.core.visible import one_line
from gpufleet.doctor.models import Link, load_steps
from gpufleet.helm.chart_choice import load_charts
from gpufleet.kube.facts import Workload
from gpufleet.kube.parse import parse_workload, seconds_of
from gpufleet.kube.pod_reasons import STARTING_REASONS, find_reasons, is_ready_or_done

Item = Mapping[str, Any]

STARTING_SECONDS = 120  # seconds for which a pod that is not Ready may still be starting
RESTART = "restart_plugin_pod"  # the step with the fix
# name of a program, and the effect of a dead pod on its node
PLUGIN = "the device plugin", "its node offers no GPUs to new pods"
EXPORTER = "the exporter", "there are no metrics of the GPUs of its node"


@dataclass(frozen=True, slots=True)
class DeadPod:
    """A pod of a DaemonSet that does not serve its node."""

    namespace: str
    name: str
    uid: str
    node: str
    why: str


@dataclass(frozen=True, slots=True)
class DaemonPods:
    """The pods of the DaemonSets of one program. `effect`: what a dead one means for its node.
    `starting`: nodes of the pods that are not Ready yet."""

    program: str
    effect: str
    total: int
    dead: tuple[DeadPod, ...]
    starting: frozenset[str] = frozenset()

    @property
    def link(self) -> Link | None:
        """The reading of the check of the program, None without a pod."""
        if not self.total:
            return None
        if not self.dead:
            return Link(f"{count_noun(self.total, 'pod')} Ready")
        first = self.dead[0]
        return Link(
            f"{len(self.dead)} of {self.total} not Ready",
            f"Pod {first.namespace}/{first.name} of {self.program} is not Ready ({first.why}): "
            f"{self.effect}.",
            place=f"{first.namespace}/{first.name}",
        )


def plugin_daemonsets(daemonsets: Iterable[Item]) -> dict[str, Workload]:
    """The DaemonSets of NVIDIA's device plugin, by uid."""
    fix = load_steps().steps[RESTART].fix
    images = set(fix.images if fix else ())
    is_plugin = load_charts().plugin_signs.fits
    return _fitting(
        daemonsets, lambda work: is_plugin(work) and not images.isdisjoint(work.image_names)
    )


def exporter_daemonsets(daemonsets: Iterable[Item]) -> dict[str, Workload]:
    """The DaemonSets of exporters, by uid."""
    return _fitting(daemonsets, load_charts().is_exporter)


def _fitting(daemonsets: Iterable[Item], fits: Callable[[Workload], bool]) -> dict[str, Workload]:
    works = {each["metadata"]["uid"]: parse_workload("DaemonSet", each) for each in daemonsets}
    return {uid: work for uid, work in works.items() if fits(work)}


def owned_pods(
    owners: Mapping[str, Workload], pods: Iterable[Item]
) -> Iterator[tuple[Item, Workload]]:
    """The pods of these DaemonSets, each with its own. A pod without a node waits for the
    scheduler, and one that ends is replaced without help."""
    for pod in pods:
        about = pod["metadata"]
        sets = (owners.get(each["uid"]) for each in about.get("ownerReferences") or ())
        work = next(filter(None, sets), None)
        if work and not about.get("deletionTimestamp") and (pod.get("spec") or {}).get("nodeName"):
            yield pod, work


def judge_pods(
    program: tuple[str, str],
    owners: Mapping[str, Workload],
    pods: Iterable[Item],
    now: int,
    patience: int | None,
) -> DaemonPods:
    """The pods of PLUGIN or EXPORTER, by the uids of its DaemonSets. `patience`: see is_dead."""
    own = [pod for pod, _ in owned_pods(owners, pods)]
    late = [pod for pod in own if not is_ready_or_done(pod)]
    dead = [pod for pod in late if is_dead(pod, now, patience)]
    starting = frozenset(pod["spec"]["nodeName"] for pod in late if pod not in dead)
    return DaemonPods(*program, len(own), tuple(map(_dead_pod, dead)), starting)


def is_dead(pod: Item, now: int, patience: int | None) -> bool:
    """True if a pod fails or is not Ready. `patience`: seconds for which it may still be starting,
    None if it should be Ready."""
    if is_ready_or_done(pod):
        return False
    return patience is None or _fails(pod) or now - ready_changed(pod) > patience


def _fails(pod: Item) -> bool:
    """True if the kubelet cannot run a container, or one has just ended: one of a DaemonSet never
    ends by itself."""
    status = pod.get("status") or {}
    own = status.get("containerStatuses") or ()
    ended = any((each.get("state") or {}).get("terminated") for each in own)
    every = (*(status.get("initContainerStatuses") or ()), *own)
    waits = [(each.get("state") or {}).get("waiting") or {} for each in every]
    return ended or any(wait.get("reason", "") not in STARTING_REASONS for wait in waits)


def ready_changed(pod: Item) -> int:
    """When a pod became Ready, or was no longer: seconds since 1970, 0 if unknown."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready: Item = next((each for each in conditions if each["type"] == "Ready"), {})
    return seconds_of(ready.get("lastTransitionTime") or pod["metadata"].get("creationTimestamp"))


def _dead_pod(pod: Item) -> DeadPod:
    about = pod["metadata"]
    reasons = find_reasons([pod], [])
    why = one_line(reasons[0].text) if reasons else "it gives no reason"
    return DeadPod(about["namespace"], about["name"], about["uid"], pod["spec"]["nodeName"], why)
