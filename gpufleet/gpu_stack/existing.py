"""Finds components in a cluster that replace a component of gpufleet. Pure.

A workload is recognised by its behaviour: the folders of its node that it mounts, the ports that it
opens, the resources that nodes advertise. Names and images are only hints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gpufleet.core.findings import Finding
from gpufleet.core.names import name_hosts
from gpufleet.gpu_stack.findings import HANDLER_UNKNOWN
from gpufleet.gpu_stack.model import StackBuilder
from gpufleet.helm.builder import DRA, EXPORTER, NFD, OPERATOR, PLUGIN, STACK
from gpufleet.helm.chart_models import ChartCatalog
from gpufleet.kube.facts import ClusterNode, Workload
from gpufleet.kube.node_answers import has_gpus

PROMETHEUSES = "prometheuses.monitoring.coreos.com"
NVIDIA_CLASS = "nvidia"  # RuntimeClass of NVIDIA's guides and of the GPU Operator
NODE_EXPORTER = 9100  # port of the node


def device_plugins(build: StackBuilder) -> list[str]:
    """Device plugins for NVIDIA GPUs that gpufleet did not install."""
    return build.others(_not_operated(build, build.catalog.plugin_signs.fits), chart=PLUGIN)


def foreign_plugins(build: StackBuilder) -> list[Workload]:
    """Device plugins of other owners, also those that have no pods now: a node that joins may get
    one."""
    fits = _not_operated(build, build.catalog.plugin_signs.fits)
    return [
        work for work in build.facts.workloads if fits(work) and not build.is_ours(work, PLUGIN)
    ]


def dra_drivers(build: StackBuilder) -> list[str]:
    """DRA drivers for NVIDIA GPUs that gpufleet did not install."""
    return build.others(build.catalog.dra_signs.fits, chart=DRA)


def offering_nodes(build: StackBuilder) -> list[str]:
    """Nodes that advertise GPUs although no release of gpufleet does: their plugin is part of the
    node's image, or has no known sign."""
    if build.managed(PLUGIN) or build.managed(OPERATOR):
        return []
    return [node.name for node in _judged(build) if has_gpus(node.allocatable)]


def silent_nodes(build: StackBuilder) -> list[str]:
    """The other GPU nodes, which advertise no GPUs."""
    return [node.name for node in _judged(build) if not has_gpus(node.allocatable)]


def unknown_handlers(build: StackBuilder) -> Iterator[Finding]:
    """A finding for each RuntimeClass for GPUs whose handler the runtime of a GPU node lacks."""
    classes = build.facts.runtime_classes
    for name in sorted({NVIDIA_CLASS, build.settings.device_plugin.runtime_class or ""}):
        lacking = [
            node.name
            for node in _judged(build)
            if name in classes and node.handlers and classes[name] not in node.handlers
        ]
        if lacking:
            yield HANDLER_UNKNOWN(name=name, handler=classes[name], nodes=name_hosts(lacking))


def _judged(build: StackBuilder) -> list[ClusterNode]:
    """The GPU nodes that run pods of a DaemonSet now, or all GPU nodes if none does. The last
    report of a lost kubelet, or a virtual node, does not show whether a plugin runs."""
    known = [node for node in build.facts.nodes if node.name in build.gpu_nodes]
    return [node for node in known if node.usable] or known


def existing_exporters(build: StackBuilder) -> list[str]:
    """Workloads that serve GPU metrics, or use the exporter's port on their nodes."""
    return build.others(_not_operated(build, _is_exporter(build.catalog)), chart=EXPORTER)


def host_engines(build: StackBuilder) -> list[str]:
    """DCGM's host engines that serve no metrics themselves."""
    is_engine, is_exporter = build.catalog.engine_signs.fits, _is_exporter(build.catalog)
    works = build.facts.workloads
    return [
        str(work.ref) for work in works if work.wanted and is_engine(work) and not is_exporter(work)
    ]


def existing_nfds(build: StackBuilder) -> list[str]:
    """NFDs that gpufleet did not install, neither as a release nor with its plugin or operator."""
    is_nfd = build.catalog.nfd_signs.fits

    def fits(work: Workload) -> bool:
        return is_nfd(work) and not any(build.is_ours(work, one) for one in (PLUGIN, OPERATOR))

    return build.others(fits, chart=NFD)


def prometheus_operators(build: StackBuilder) -> list[str]:
    """Prometheus Operators that gpufleet did not install: Deployments with an image of that name,
    if the API serves the operator's kinds. The name alone proves nothing."""
    if not build.facts.serves(PROMETHEUSES):
        return []
    return [
        str(work.ref)
        for work in build.facts.workloads
        if work.wanted
        and work.kind == "Deployment"
        and any("prometheus-operator" in name for name in work.image_names)
        and not build.is_ours(work, STACK)
    ]


def node_exporters(build: StackBuilder) -> list[str]:
    """Workloads on the node exporter's port of their nodes, unless our node exporter uses it."""
    stack = build.managed(STACK)
    ours = stack.among(build.facts.workloads) if stack else ()
    if any(NODE_EXPORTER in work.host_ports for work in ours):
        return []
    return [
        str(work.ref)
        for work in build.facts.workloads
        if work.wanted and NODE_EXPORTER in work.host_ports
    ]


def _is_exporter(catalog: ChartCatalog) -> Callable[[Workload], bool]:
    """By the exporter's host port, or by its signs."""
    port = catalog.exporter_signs.port
    return lambda work: port in work.host_ports or catalog.is_exporter(work)


def _not_operated(
    build: StackBuilder, fits: Callable[[Workload], bool]
) -> Callable[[Workload], bool]:
    """The test `fits`, except that it rejects the workloads of our GPU Operator."""
    owners = build.catalog.operands.owners
    ours = build.settings.cluster.stack == OPERATOR
    return lambda work: fits(work) and not (ours and work.owner and work.owner.kind in owners)
