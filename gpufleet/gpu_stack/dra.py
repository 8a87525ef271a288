"""Plans NVIDIA's DRA driver, which offers the GPUs of nodes with gpu_sharing = "dra" to claims of
pods. Pure.

The device plugin does not run on these nodes: both would give out the same GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpufleet.core.entries import Sourced, entry_loader
from gpufleet.core.merge import value_at
from gpufleet.core.versions import version_tuple
from gpufleet.gpu_stack.existing import dra_drivers, foreign_plugins
from gpufleet.gpu_stack.model import StackBuilder
from gpufleet.gpu_stack.node_sharing import HostData
from gpufleet.gpu_stack.sharing_checks import Refusal, report_refusals
from gpufleet.helm.builder import DRA, PLUGIN, chart_values
from gpufleet.helm.release import Release
from gpufleet.kube.facts import ClusterNode
from gpufleet.kube.node_answers import DRA_LABEL, has_gpus, is_dra_node
from gpufleet.kube.scheduling import fitting_nodes

DAEMONSET = f"{DRA}-kubelet-plugin"  # of the chart
TERMS = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


class CdiSupport(Sourced):
    """The versions of a runtime with CDI. `default`: the first that has it switched on."""

    since: str
    default: str


class DraNeeds(Sourced):
    """dra.yaml, which describes the fields."""

    api: str
    kubernetes: str
    driver: str
    mig_gate: str
    runtimes: dict[str, CdiSupport]


load_dra_needs = entry_loader(DraNeeds, "gpu_stack/dra")


def plan_dra(build: StackBuilder, plugin: Release | None, data: HostData) -> Release | None:
    """The DRA driver, if a node asks for it. `plugin`: our device plugin's release."""
    if not build.sharing.dra:
        return None
    needs, wanted = load_dra_needs(), build.settings.device_plugin
    values = chart_values(
        "device-plugin/dra-driver-nvidia-gpu.yaml", api=needs.api, label=DRA_LABEL
    )
    release = build.release(DRA, wanted.dra_namespace, values, wanted=wanted.dra_values)
    report_refusals(
        build,
        [
            *_of_cluster(build, needs),
            *_of_nodes(build, needs, data),
            *_of_drivers(build),
            *_of_plugins(build, plugin),
            *_of_mig(build, release, needs),
        ],
    )
    labelled = {node.name for node in build.facts.nodes if is_dra_node(node.labels)}
    served = tuple(name for name in build.sharing.dra if not build.managed(DRA) or name in labelled)
    labels = {**release.ready.labels, DRA_LABEL: "true"}
    return replace(release, ready=replace(release.ready, nodes={DAEMONSET: served}, labels=labels))


def _of_cluster(build: StackBuilder, needs: DraNeeds) -> Iterator[Refusal]:
    if not build.facts.serves_api(needs.api):
        why = f"Kubernetes {build.facts.server} does not serve {needs.api}"
        instead = f"Use Kubernetes {needs.kubernetes} or newer, or another gpu_sharing."
        yield build.sharing.dra, why, instead


def _of_nodes(build: StackBuilder, needs: DraNeeds, data: HostData) -> Iterator[Refusal]:
    """Nodes whose runtime or driver is too old, as far as the API shows them."""
    nodes = [node for node in build.facts.nodes if node.name in build.sharing.dra]
    off = {
        name
        for host, keys in data.items()
        if keys.get("toolkit_cdi") is False
        for name in (host, host.partition(".")[0])
    }
    without = [node.name for node in nodes if not _has_cdi(node, needs, off)]
    known = ", ".join(f"{name} {each.since}" for name, each in needs.runtimes.items())
    yield (
        without,
        "their container runtime gives containers no devices by CDI",
        f"Use one of {known} or newer, with toolkit_cdi = True, or another gpu_sharing.",
    )
    labels = build.catalog.gpu_labels.driver
    old = [node.name for node in nodes if _is_old(node, labels, needs.driver)]
    instead = f"Upgrade it (`gpufleet upgrade`) to branch {needs.driver} or newer."
    yield old, f"the DRA driver needs NVIDIA driver {needs.driver} or newer", instead


def _has_cdi(node: ClusterNode, needs: DraNeeds, off: set[str]) -> bool:
    """True if the runtime has CDI. `off`: hosts on which gpufleet does not switch it on. A runtime
    that the kubelet has not reported may have it."""
    name, _, version = node.runtime.partition("://")
    if not name:
        return True
    known, number = needs.runtimes.get(name), version_tuple(version)
    if known is None or number < version_tuple(known.since):
        return False
    return node.name not in off or number >= version_tuple(known.default)


def _is_old(node: ClusterNode, labels: tuple[str, ...], least: str) -> bool:
    """True if GPU feature discovery names an older driver."""
    found = next((node.labels[label] for label in labels if node.labels.get(label)), "")
    return found[:1].isdecimal() and version_tuple(found)[0] < version_tuple(least)[0]


def _of_drivers(build: StackBuilder) -> Iterator[Refusal]:
    """Another DRA driver, which would offer the same GPUs from the same nodes."""
    others = dra_drivers(build)
    if others:
        why = f"{others[0]} is a DRA driver for the same GPUs"
        instead = "Uninstall it first, or keep it and remove gpu_sharing of these hosts."
        yield build.sharing.dra, why, instead


def _of_plugins(build: StackBuilder, plugin: Release | None) -> Iterator[Refusal]:
    """Nodes on which a device plugin runs too, or could run."""
    nodes = [node for node in build.facts.nodes if node.name in build.sharing.dra]
    instead = "Remove that plugin from these nodes first, or use another gpu_sharing."
    others = foreign_plugins(build)
    for work in others:
        reached = [node.name for node in fitting_nodes(work.placement, nodes)]
        yield reached, f"{work.ref} would advertise their GPUs", instead
    if plugin is None and not others:
        offering = [node.name for node in nodes if has_gpus(node.allocatable)]
        yield offering, "a device plugin advertises their GPUs", instead
    if plugin and not _keeps_away(plugin.values):
        why = f"with affinity in device_plugin_values, {PLUGIN} would run on them, too"
        instead = (
            f"Give each of its nodeSelectorTerms the expression {{key: {DRA_LABEL}, operator: "
            'NotIn, values: ["true"]}, or remove affinity.'
        )
        yield build.sharing.dra, why, instead


def _keeps_away(values: Mapping[str, Any]) -> bool:
    """True if pods with this affinity do not run on nodes with DRA_LABEL."""
    terms = value_at(values, TERMS)
    return isinstance(terms, list | tuple) and all(
        any(map(_excludes, _entries(term, "matchExpressions"))) for term in terms
    )


def _excludes(expression: Any) -> bool:
    if value_at(expression, "key") != DRA_LABEL:
        return False
    operator = value_at(expression, "operator")
    return operator == "DoesNotExist" or (
        operator == "NotIn" and "true" in _entries(expression, "values")
    )


def _entries(values: Any, key: str) -> Sequence[Any]:
    found = value_at(values, key)
    return found if isinstance(found, list | tuple) else ()


def _of_mig(build: StackBuilder, release: Release, needs: DraNeeds) -> Iterator[Refusal]:
    gate = value_at(release.values, f"featureGates.{needs.mig_gate}")
    if str(gate).lower() == "true":
        keys = build.sharing.nodes
        divided = [name for name in build.sharing.dra if keys[name].mig is not None]
        why = (
            f"with {needs.mig_gate} in device_plugin_dra_values, the DRA driver divides GPUs itself"
        )
        yield divided, why, f"Remove gpu_mig of these hosts, or {needs.mig_gate}."
