"""Reads the links of a cluster: pods for GPUs, GPUs of its nodes, Helm releases. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpufleet.core.names import count_noun
from gpufleet.core.visible import one_line
from gpufleet.doctor.models import Link, Readings
from gpufleet.doctor.plugin_pods import DaemonPods
from gpufleet.kube.node_answers import ClusterNode, is_dra_node, is_gpu
from gpufleet.status.clusters import Part

REPAIRS = ("repair", "repair-failed")  # actions of a plan that puts a release in order


@dataclass(frozen=True, slots=True)
class ReadCluster:
    """The GPUs of a cluster as its API server reports them. `access`: the words by which kubectl
    reaches it."""

    plugin: DaemonPods
    exporter: DaemonPods
    offered: Link | None
    access: tuple[str, ...] = ()

    @property
    def readings(self) -> Readings:
        return {
            "cluster.plugin": self.plugin.link,
            "cluster.exporter": self.exporter.link,
            "cluster.offered": self.offered,
        }


def read_offered(nodes: Iterable[ClusterNode], plugin: DaemonPods) -> Link | None:
    """The GPUs that nodes offer, of those that they have: the kubelet does not offer a GPU that
    the plugin reports as unhealthy, nor one whose plugin has ended. On nodes of the DRA driver none
    is offered in this way."""
    able = [node for node in nodes if node.usable and _gpus(node.capacity)]
    out = {*plugin.starting, *(node.name for node in able if is_dra_node(node.labels))}
    judged = [node for node in able if node.name not in out]
    short = [said for node in judged for said in _withheld(node)]
    read = f"{sum(_gpus(node.allocatable) for node in judged)} offered"
    if short:
        return Link(read, f"{short[0]}: the device plugin reports the others as unhealthy, or it "
                       "has ended.")  # fmt: skip
    return Link(read) if judged else None


def _withheld(node: ClusterNode) -> Iterator[str]:
    for name, count in node.capacity.items():
        offered = node.allocatable.get(name, 0)
        if is_gpu(name) and offered < count:
            yield f"{node.name} offers {offered} of {count} {name}"


def _gpus(resources: Mapping[str, int]) -> int:
    return sum(count for name, count in resources.items() if is_gpu(name))


def read_releases(part: Part) -> Link | None:
    """The Helm releases of a plan's report. One that lacks a workload, or whose last revision has
    failed, is a fault; one whose pods still start is not."""
    planned = part["plan"].get("releases") or ()
    broken = [each for each in planned if each["action"] in REPAIRS]
    if broken:
        said = one_line(f"{broken[0]['name']}: {broken[0]['reason']}")
        return Link(f"{len(broken)} of {len(planned)} to repair", f"Release {said}.")
    return Link(f"{count_noun(len(planned), 'release')} in order") if planned else None
