"""Checks that the charts of the plan can share GPUs as the nodes' keys request. Pure.

Sources: https://github.com/NVIDIA/k8s-device-plugin (read 2026-11-29): internal/lm/nvml.go for the
label mps.capable, cmd/mps-control-daemon/mps/device.go; https://github.com/NVIDIA/gpu-operator
(read 2026-11-29): controllers/object_controls.go for MIG_STRATEGY
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.merge import value_at
from gpufleet.core.names import count_noun, fold_names, list_names
from gpufleet.core.render import render_template
from gpufleet.gpu.sharing import is_uniform
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.existing import existing_nfds
from gpufleet.gpu_stack.model import StackBuilder
from gpufleet.gpu_stack.node_labels import LabelChange, label_changes
from gpufleet.gpu_stack.node_sharing import NodeSharing
from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.builder import DRA, OPERATOR, PLUGIN
from gpufleet.helm.chart_values import same_values
from gpufleet.helm.release import Release
from gpufleet.kube.facts import ClusterFacts

MPS = {PLUGIN: "mps.root", OPERATOR: "devicePlugin.mps.root"}  # values of the charts
CONFIGS = "devicePlugin.config.data"
COMPUTE = ("nvidia.com/gpu.compute.major", "nvidia.com/gpu.compute.minor")  # labels of GFD
MANY_CLIENTS = (7, 5)  # compute capability from which the plugin allows MAX_MPS_CLIENTS
MAX_OLD_CLIENTS = 16  # clients of an MPS server on older GPUs
MAX_SHOWN_NODES, MAX_SHOWN_PODS = 8, 3  # of a finding
Refusal = tuple[Iterable[str], str, str]  # nodes, why, what to do


def check_node_sharing(build: StackBuilder, chart: str) -> None:
    """Report nodes whose GPUs the chart of the plan cannot share as their keys request."""
    report_refusals(build, [*_of_keys(build), *_of_chart(build, chart), *_of_mps(build, chart)])


def report_refusals(build: StackBuilder, refused: Iterable[Refusal]) -> None:
    """Report the reasons why GPUs cannot be shared, each unless it concerns no node."""
    for nodes, why, instead in refused:
        if named := list(nodes):
            shown = _shown(named)
            build.findings.append(findings.SHARING_REFUSED(nodes=shown, why=why, instead=instead))


def _shown(nodes: Sequence[str]) -> str:
    """Names of nodes for a sentence, with ranges."""
    return list_names(fold_names(nodes), MAX_SHOWN_NODES)


def _of_keys(build: StackBuilder) -> Iterator[Refusal]:
    """Nodes whose keys contradict those of the cluster, or the limits of their GPUs."""
    sharing = build.sharing
    uneven = [
        name
        for name, mode in sharing.modes.items()
        if mode.strategy == "single" and not is_uniform(sharing.nodes[name])
    ]
    why = "with the MIG strategy single, all GPUs of a node need MIG devices of one profile"
    yield uneven, why, 'Set gpu_mig_strategy = "mixed", or use one profile on all GPUs.'
    many = {name for name in sharing.using("mps") if sharing.modes[name].replicas > MAX_OLD_CLIENTS}
    old = [
        node.name
        for node in build.facts.nodes
        if node.name in many
        and _is_old(node.labels.get(COMPUTE[0], ""), node.labels.get(COMPUTE[1], ""))
    ]
    most = count_noun(MAX_OLD_CLIENTS, "pod")
    why = f"by MPS, the plugin shares GPUs before Turing among at most {most}"
    yield old, why, f"Set gpu_replicas to {MAX_OLD_CLIENTS} or less."


def _is_old(major: str, minor: str) -> bool:
    """True if GFD's labels name a compute capability before MANY_CLIENTS."""
    known = [int(part) for part in (major, minor) if part.isdecimal() and len(part) < 3]
    return len(known) == 2 and tuple(known) < MANY_CLIENTS


def _of_chart(build: StackBuilder, chart: str) -> Iterator[Refusal]:
    """Nodes that need what the GPU Operator cannot do."""
    if chart != OPERATOR:
        return
    sharing, version = build.sharing, build.charts[chart].version
    why = "gpu-operator runs its device plugin on every GPU node, also beside a DRA driver"
    yield sharing.dra, why, 'Set cluster_stack = "device-plugin", or use another gpu_sharing.'
    if not build.has_feature(chart, CONFIGS):
        why = f"gpu-operator {version} takes no configurations of the device plugin"
        yield sharing.modes, why, _fitting(build, chart, CONFIGS)
    if len(strategies := sorted(sharing.strategies)) > 1:
        mixed = [name for name, mode in sharing.modes.items() if mode.strategy != "none"]
        why = f"gpu-operator has one MIG strategy for all nodes, not {' and '.join(strategies)}"
        instead = "Set gpu_mig_strategy of these nodes and device_plugin_mig_strategy to one value."
        yield mixed, why, instead


def _of_mps(build: StackBuilder, chart: str) -> Iterator[Refusal]:
    """Nodes on which no MPS control daemon would run."""
    nodes, version = build.sharing.using("mps"), build.charts[chart].version
    if not build.has_feature(chart, MPS[chart]):
        why = f"MPS does not work with {chart} {version}"
        yield nodes, why, _fitting(build, chart, MPS[chart])
    plugin = build.settings.device_plugin
    labelled = plugin.nfd is True or (plugin.nfd == "auto" and not plugin.label_nodes)
    if chart != OPERATOR and not (plugin.gfd and (labelled or existing_nfds(build))):
        why = (
            "the MPS control daemon runs where GPU feature discovery, by way of "
            "node-feature-discovery, sets the label nvidia.com/mps.capable"
        )
        keys = "device_plugin_gfd, device_plugin_nfd and device_plugin_label_nodes"
        yield nodes, why, f"Remove {keys}, or share by time-slicing."


def _fitting(build: StackBuilder, chart: str, feature: str) -> str:
    found = build.catalog.charts[chart]
    since, lost = found.features[feature], found.lost_features.get(feature)
    versions = f"{since} or newer, before {lost}" if lost else f"{since} or newer"
    return f"Use {chart} {versions} (cluster_chart_versions), or remove the keys."


def config_texts(sharing: NodeSharing, *, keep: bool = False) -> dict[str, str]:
    """Name -> content of each configuration of the plugin. Without keys of nodes, a value of the
    chart has the MIG strategy. `keep`: the default also if the plugin needs none."""
    return {
        config.name: render_template(
            "device-plugin/configuration.yaml",
            sharing=config.mode.sharing,
            replicas=config.mode.replicas,
            strategy=config.mode.strategy if sharing.modes else "none",
            resources=config.resources,
        )
        for config in sharing.configs(keep=keep)
    }


def parts_of_sharing(build: StackBuilder) -> list[str]:
    """The parts of reliances.yaml that the sharing of GPUs requests."""
    sharing, operator = build.sharing, build.settings.cluster.stack == OPERATOR
    asked = {
        "mig-strategy": sharing.strategies and (operator or not sharing.modes),
        "node-sharing": sharing.modes,
        "mps": sharing.using("mps") and build.settings.device_plugin.gfd,
    }
    return [name for name, is_asked in asked.items() if is_asked]


def values_of_sharing(build: StackBuilder) -> dict[str, object]:
    """Values of the sharing of GPUs, by their names in reliances.yaml."""
    sharing = build.sharing
    strategy = min(sharing.strategies, default="none")
    return {"mig_strategy": strategy, "default_config": sharing.default_name}


def plan_config_labels(build: StackBuilder, releases: Sequence[Release]) -> tuple[LabelChange, ...]:
    """The nodes that get another configuration of the plugin, or move to the DRA driver or from it.
    Without that release of gpufleet, none keeps its label. A label waits for the release that Flux
    or Argo CD installs."""
    sharing, facts = build.sharing, build.facts
    ours = [release for release in releases if release.chart in (PLUGIN, OPERATOR)]
    drivers = [release for release in releases if release.chart == DRA]
    if _is_awaited(facts, [*ours, *drivers], bool(sharing.dra)):
        return ()
    offered = NodeSharing(
        sharing.default,
        sharing.nodes,
        sharing.modes if ours else {},
        sharing.dra if drivers else (),
    )
    build.findings += [findings.LAYOUT_FIRST(node=name) for name in sharing.kept if ours]
    changes, left = label_changes(offered, facts)
    build.findings += left
    disturbed = [change.node for change in changes if change.disturbs]
    if refusal := refuse_with_pods(build.settings, facts.gpu_pods, disturbed):
        build.findings.append(refusal)
    return tuple(changes)


def _is_awaited(facts: ClusterFacts, releases: Sequence[Release], dra: bool) -> bool:
    """True if Flux or Argo CD has yet to install what labels of nodes refer to. `dra`: also where
    the plugin's pods run, which must not be on nodes of the DRA driver."""
    live = [facts.release(release.namespace, release.name) for release in releases]
    if not any(found and found.keeper for found in live):
        return False
    return any(
        found is None
        or not same_values(_configs_of(found.values, dra), _configs_of(release.values, dra))
        for release, found in zip(releases, live, strict=True)
    )


def _configs_of(values: Mapping[str, Any], dra: bool) -> tuple[object, object]:
    """The plugin's configurations in the values of a chart, and with `dra` its affinity."""
    configs = value_at(values, "config.map") or value_at(values, CONFIGS) or {}
    return configs, value_at(values, "affinity") if dra else None


def refuse_with_pods(
    settings: ClusterSettings, pods: Mapping[str, Sequence[str]], nodes: Iterable[str]
) -> Finding | None:
    """The finding if the sharing of nodes would change under pods with GPUs. `pods`: by node. The
    operator's own pods, which test nodes, do not count."""
    operator = settings.cluster.stack == OPERATOR
    tests = f"{settings.gpu_operator.namespace}/" if operator else "/"
    found = {
        name: [pod for pod in pods.get(name, ()) if not pod.startswith(tests)] for name in nodes
    }
    busy = {name: each for name, each in found.items() if each}
    if not busy or settings.cluster.allow_disruption:
        return None
    shown = ", ".join([pod for each in busy.values() for pod in each][:MAX_SHOWN_PODS])
    return findings.SHARING_WITH_PODS(nodes=_shown(list(busy)), pods=shown)
