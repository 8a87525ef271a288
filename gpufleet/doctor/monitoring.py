"""Judges the exporters as targets of the Prometheus of their cluster. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpufleet.core.names import count_noun
from gpufleet.doctor.models import Link, Readings, Verdict
from gpufleet.doctor.plugin_pods import owned_pods, ready_changed
from gpufleet.kube.facts import Workload
from gpufleet.kube.pod_reasons import is_ready_or_done
from gpufleet.kube.prometheus import DISCOVERY_SECONDS, PrometheusService, up_by_target

Item = Mapping[str, Any]

PROMETHEUS, TARGETS, ALERTS = "cluster.prometheus", "cluster.targets", "cluster.alerts"  # checks
TARGET, SCRAPE = "chain.target", "chain.scrape"  # checks of a node
# Age of a fresh scrape: two minutes is the longest interval that Prometheus' developers recommend.
# https://www.mail-archive.com/prometheus-users@googlegroups.com/msg03583.html (read 2026-11-29)
FRESH_SECONDS = 180
# A query has no value of a series whose last scrape is older than five minutes.
UP_QUERY, AGE_QUERY = "up", "time() - timestamp(up)"
IS_UP = "1"
OBJECTS_UNLISTED = "The API server does not list Prometheus, exporters or rules"


@dataclass(frozen=True, slots=True)
class ExporterPod:
    """A pod of the exporter. `machine`: machine id of its node, "" if unknown or not unique;
    `targets`: names by which it can be a target; `since`: when it became Ready, None if it is
    not."""

    namespace: str
    name: str
    node: str
    machine: str
    targets: tuple[str, ...]
    since: int | None

    def __str__(self) -> str:
        return f"exporter pod {self.namespace}/{self.name} of node {self.node}"


@dataclass(frozen=True, slots=True)
class ClusterMonitoring:
    """The readings by a cluster's Prometheus. `links`: those of the cluster's own checks; `nodes`:
    the machine id of each node, and the readings of its exporter as a target."""

    links: Readings
    nodes: tuple[tuple[str, Readings], ...] = ()

    def of_machine(self, machine: str) -> Readings:
        """The readings of a host, by its machine id."""
        own = (links for name, links in self.nodes if machine and name == machine)
        return next(own, {})

    def of_cluster(self, machines: Collection[str]) -> Readings:
        """The readings of the cluster. A target of a host that is judged too counts there alone.
        `machines`: the machine ids of these hosts."""
        rest = [links for machine, links in self.nodes if machine not in machines and links]
        faults = [link for links in rest for link in links.values() if link and link.fault]
        read = count_noun(len(rest), "exporter")
        if faults:
            first = Link(
                f"{len(faults)} of {read} not scraped", faults[0].fault, place=faults[0].place
            )
            return {TARGETS: first, **self.links}
        return {TARGETS: Link(f"{read} up") if rest else None, **self.links}


def exporter_pods(
    owners: Mapping[str, Workload],
    pods: Iterable[Item],
    machines: Mapping[str, str],
) -> list[ExporterPod]:
    """The pods of these DaemonSets on a node. `machines`: node -> machine id."""
    times = Counter(machines.values())
    unique = {node: machine for node, machine in machines.items() if times[machine] == 1}
    return [_exporter_pod(pod, work, unique) for pod, work in owned_pods(owners, pods)]


def _exporter_pod(pod: Item, work: Workload, machines: Mapping[str, str]) -> ExporterPod:
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
    address = (pod.get("status") or {}).get("podIP")
    return ExporterPod(
        work.namespace,
        name,
        node,
        machines.get(node, ""),
        (name, *(f"{address}:{port}" for port in work.ports)),
        ready_changed(pod) if is_ready_or_done(pod) else None,
    )


def silent_prometheus(place: PrometheusService | None, why: str) -> ClusterMonitoring:
    """The reading if Prometheus does not answer. `place`: None if the API server does not say which
    Prometheus, exporters or rules there are."""
    silent = f"{place} does not answer through the API server" if place else OBJECTS_UNLISTED
    fault = f"{silent}: {why.rstrip('.')}."
    return ClusterMonitoring(
        {PROMETHEUS: Link("no answer", fault, place=place.full_name if place else "")}
    )


def judge_monitoring(
    place: PrometheusService,
    up: Sequence[Item],
    ages: Iterable[Item],
    pods: Sequence[ExporterPod],
    alerts: Link | None,
    now: int,
) -> ClusterMonitoring:
    """The readings by a Prometheus that answers. `up`, `ages`: series of UP_QUERY and AGE_QUERY;
    `alerts`: the reading of its rules."""
    if not up:
        fault = f"{place} answers, and has scraped nothing in the last five minutes."
        nothing = Link("no scrape", fault, verdict=Verdict.WARNING, place=place.full_name)
        return ClusterMonitoring({PROMETHEUS: nothing, ALERTS: alerts})
    links: Readings = {
        PROMETHEUS: Link(f"{place} answers, {count_noun(len(up), 'target')}"), ALERTS: alerts,
    }  # fmt: skip
    targets, by_age = up_by_target(up), up_by_target(ages)
    expected = [pod for pod in pods if _is_expected(pod, place, now)]
    if expected and not any(name in targets for pod in pods for name in pod.targets):
        fault = f"{place} has no target of the exporter, such as {expected[0]}."
        return ClusterMonitoring(
            {**links, TARGETS: Link("no target", fault, place=place.full_name)}
        )
    nodes: list[tuple[str, Readings]] = []
    for pod in pods:
        target = _target(place, pod, targets, pod in expected)
        own = {TARGET: target, SCRAPE: _scrape(place, pod, by_age)} if target else {}
        nodes.append((pod.machine, own))
    return ClusterMonitoring(links, tuple(nodes))


def _is_expected(pod: ExporterPod, place: PrometheusService, now: int) -> bool:
    """True if a pod has been Ready long enough to be a target."""
    return place.whole and pod.since is not None and now - pod.since > DISCOVERY_SECONDS


def _target(
    place: PrometheusService, pod: ExporterPod, targets: Mapping[str, str], expected: bool
) -> Link | None:
    value = next((targets[name] for name in pod.targets if name in targets), None)
    if value is None:
        fault = f"The {pod} is no target of {place}."
        return Link("no target", fault, place=place.full_name) if expected else None
    if value == IS_UP:
        return Link("up")
    fault = f"{place} cannot scrape the {pod}: its target is down."
    return Link("down", fault, place=place.full_name)


def _scrape(place: PrometheusService, pod: ExporterPod, ages: Mapping[str, str]) -> Link | None:
    """The age of the last scrape, None if it is not known."""
    text = next((ages[name] for name in pod.targets if name in ages), "")
    try:
        age = float(text)
    except ValueError:
        return None
    if not math.isfinite(age):
        return None
    read = f"{age:.0f} s ago"
    if age <= FRESH_SECONDS:
        return Link(read)
    return Link(read, f"{place} last scraped the {pod} {read}.", place=place.full_name)
