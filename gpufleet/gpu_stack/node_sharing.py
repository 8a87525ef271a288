"""Plans how each node offers its GPUs: the device plugin shares them by a configuration that a
label of the node names, or another label gives the node to the DRA driver. Pure.

Sources: https://github.com/NVIDIA/k8s-device-plugin (read 2026-11-29): README.md, "Updating
Per-Node Configuration With a Node Label"; internal/rm/rm.go for the names of resources
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.load_settings import load_role
from gpufleet.core.merge import value_at
from gpufleet.core.names import fold_names
from gpufleet.gpu.layouts import mig_resource
from gpufleet.gpu.settings import GpuSettings
from gpufleet.gpu.sharing import check_sharing, divides_gpus
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.builder import OPERATOR
from gpufleet.kube.facts import ClusterFacts, ClusterNode
from gpufleet.kube.node_answers import DRA_LABEL, GPU_RESOURCE, is_dra_node, is_gpu

HostData = Mapping[str, Mapping[str, Any]]  # host of the inventory -> its data
CONFIG_LABEL = "nvidia.com/device-plugin.config"  # of a node; its value: a configuration
OWN_LABELS = frozenset((CONFIG_LABEL, DRA_LABEL))  # gpufleet sets one of them per node, or none
GPU_COUNT, MIG_STRATEGY = "nvidia.com/gpu.count", "nvidia.com/mig.strategy"  # labels of GFD
SHARED = "shared"  # the configuration of nodes without a label, with device_plugin_time_slicing
UNSHARED = "default"  # the same without it
MIG = mig_resource("")  # beginning of the resources of MIG devices
WITHOUT_EFFECT = ("none", "mixed")  # strategies that leave whole GPUs as they are


@dataclass(frozen=True, slots=True)
class SharingMode:
    """How the plugin advertises the GPUs of a node. `replicas`: 1 if they are not shared;
    `strategy`: of MIG, also "none"."""

    sharing: str
    replicas: int
    strategy: str

    @property
    def name(self) -> str:
        """Of the plugin's configuration: whole, time-slicing-4, mig-mixed, mig-single-mps-2."""
        parts = [f"mig-{self.strategy}"] if self.strategy != "none" else []
        parts += [f"{self.sharing}-{self.replicas}"] if self.sharing != "none" else []
        return "-".join(parts) or "whole"


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """A configuration of the plugin. `resources`: those that pods share."""

    name: str
    mode: SharingMode
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LabelChange:
    """A change of the labels that gpufleet sets: afterwards the node has `label` with the value
    `after`, "" for no label, and no other one of gpufleet's. `resources`: what the node advertises
    before and after it; `retires`: the configuration of the present label is not among the new
    ones; `disturbs`: the GPUs are shared in another way."""

    node: str
    label: str
    after: str
    resources: str
    retires: bool
    disturbs: bool


@dataclass(frozen=True, slots=True)
class NodeSharing:
    """What the inventory requests. `default`: for nodes without keys; `nodes`: node -> its keys;
    `modes`: node -> how the device plugin shares its GPUs; `dra`: nodes of the DRA driver."""

    default: SharingMode
    nodes: Mapping[str, GpuSettings] = field(default_factory=dict)
    modes: Mapping[str, SharingMode] = field(default_factory=dict)
    dra: tuple[str, ...] = ()

    def label_of(self, node: str) -> tuple[str, str]:
        """The label that a node needs, and its value, "" for none."""
        if node in self.dra:
            return DRA_LABEL, "true"
        return CONFIG_LABEL, self.modes[node].name if node in self.modes else ""

    @property
    def default_name(self) -> str:
        return SHARED if self.default.sharing != "none" else UNSHARED

    @property
    def shares(self) -> bool:
        """True if pods share GPUs of a node."""
        return any(mode.replicas > 1 for mode in (self.default, *self.modes.values()))

    @property
    def strategies(self) -> set[str]:
        """The MIG strategies in use."""
        return {mode.strategy for mode in (self.default, *self.modes.values())} - {"none"}

    def using(self, sharing: str) -> list[str]:
        """The nodes that share their GPUs in this way."""
        return [name for name, mode in self.modes.items() if mode.sharing == sharing]

    def configs(self) -> tuple[PluginConfig, ...]:
        """The plugin's configurations, the default first. () if the plugin needs none."""
        if not self.modes and self.default.sharing == "none":
            return ()
        distinct = sorted({*self.modes.values()}, key=lambda mode: mode.name)
        first = PluginConfig(self.default_name, self.default, (GPU_RESOURCE,))
        return (first, *(PluginConfig(mode.name, mode, self._shared(mode)) for mode in distinct))

    def _shared(self, mode: SharingMode) -> tuple[str, ...]:
        """The resources of all nodes with this mode. The plugin ignores those that a node lacks."""
        names = {GPU_RESOURCE}
        for name in (name for name, found in self.modes.items() if found == mode):
            if mode.strategy == "mixed":
                layouts = (self.nodes[name].mig or {}).values()
                names.update(mig_resource(profile) for layout in layouts for profile in layout)
        return tuple(sorted(names))


def load_gpu_keys(
    data: HostData, facts: ClusterFacts
) -> tuple[dict[str, GpuSettings], list[Finding]]:
    """The keys of the hosts that are nodes of the cluster, and a blocker for each invalid one."""
    keys: dict[str, GpuSettings] = {}
    wrong: list[Finding] = []
    nodes = {node.name for node in facts.nodes}
    for host, each in data.items():
        if not nodes & {host, host.partition(".")[0]}:
            continue
        problems: list[Finding] = []
        loaded = load_role(GpuSettings, each, problems)
        problems += check_sharing(loaded) if loaded else []
        wrong += [
            findings.KEYS_OF_A_NODE(host=host, problem=problem.message) for problem in problems
        ]
        keys |= {host: loaded} if loaded and not problems else {}
    return keys, wrong


def plan_sharing(
    settings: ClusterSettings, facts: ClusterFacts, hosts: Mapping[str, GpuSettings]
) -> NodeSharing:
    """How the nodes of a cluster share their GPUs. `hosts`: the inventory's GPU nodes. If the user
    configures the plugin, a MIG layout alone asks for nothing."""
    plugin, own = settings.device_plugin, _is_plugin_configured(settings)
    sliced = plugin.time_slicing
    shares = "time-slicing" if sliced else "none"
    default = SharingMode(shares, sliced or 1, plugin.mig_strategy)
    known = _keys_by_node(hosts)
    nodes = {node.name: known[node.name] for node in facts.nodes if node.name in known}
    modes = {
        name: mode
        for name, keys in nodes.items()
        if (keys.sharing or keys.mig_strategy or not own) and (mode := _mode_of(keys, default))
    }
    dra = tuple(name for name, keys in nodes.items() if keys.sharing == "dra")
    return NodeSharing(default, nodes, modes, dra)


def _is_plugin_configured(settings: ClusterSettings) -> bool:
    """True if the user's values have configurations of the plugin, or a MIG strategy."""
    plugin, operator = settings.device_plugin.values, settings.gpu_operator.values
    paths = ("devicePlugin.config", "mig.strategy")
    if settings.cluster.stack == OPERATOR:
        return any(value_at(operator, path) for path in paths)
    return bool(plugin.get("config") or plugin.get("migStrategy"))


def _keys_by_node(hosts: Mapping[str, GpuSettings]) -> dict[str, GpuSettings]:
    """Name of a node -> the keys of the host with that name, or of the only one with a domain."""
    shorts = Counter(host.partition(".")[0] for host in hosts)
    short_names = ((host.partition(".")[0], keys) for host, keys in hosts.items())
    return {name: keys for name, keys in short_names if shorts[name] == 1} | dict(hosts)


def _mode_of(keys: GpuSettings, default: SharingMode) -> SharingMode | None:
    """How the plugin shares a node's GPUs, or None if no key of the node is about that."""
    divides = divides_gpus(keys)
    if keys.sharing == "dra" or (keys.sharing is None and not divides):
        return None
    sharing = keys.sharing or default.sharing
    replicas = (keys.replicas or default.replicas) if sharing != "none" else 1
    strategies = [keys.mig_strategy or "none", default.strategy, "mixed"] if divides else ["none"]
    return SharingMode(
        sharing, replicas, next((one for one in strategies if one != "none"), "none")
    )


def label_changes(
    sharing: NodeSharing, facts: ClusterFacts
) -> tuple[list[LabelChange], list[Finding]]:
    """The changes of OWN_LABELS, and findings about labels of other users, which stay."""
    changes, left = [], []
    names = {config.name for config in sharing.configs()}
    for node in facts.nodes:
        label, wanted = sharing.label_of(node.name)
        by_hand = is_dra_node(node.labels) and DRA_LABEL not in node.own_labels
        if by_hand and node.name not in sharing.dra:
            left.append(
                findings.LABEL_OF_OTHERS(
                    node=node.name, label=DRA_LABEL, found=node.labels[DRA_LABEL],
                    wanted=wanted or "none",
                )
            )  # fmt: skip
            continue
        there, ours = node.labels.get(label, ""), OWN_LABELS & {*node.own_labels}
        if not (wanted or ours) or (wanted == there and ours <= {label}):
            continue
        if wanted and there not in ("", wanted) and label not in ours:
            left.append(
                findings.LABEL_OF_OTHERS(node=node.name, label=label, found=there, wanted=wanted)
            )
            continue
        retires = CONFIG_LABEL in ours and node.labels.get(CONFIG_LABEL) not in names
        resources = _resources_text(sharing, node) if wanted else ""
        disturbs = _disturbs(sharing, node)
        changes.append(LabelChange(node.name, label, wanted, resources, retires, disturbs))
    return changes, left


def _disturbs(sharing: NodeSharing, node: ClusterNode) -> bool:
    """True if a node's wanted labels offer its present GPUs in another way. Until a node has MIG
    devices, the strategy `mixed` has no effect."""
    by_dra = is_dra_node(node.labels)
    if by_dra or node.name in sharing.dra:
        return by_dra != (node.name in sharing.dra)
    mode = sharing.modes.get(node.name, sharing.default)
    there = node.labels.get(CONFIG_LABEL) or sharing.default.name
    divided = any(node.allocatable[name] for name in node.allocatable if name.startswith(MIG))
    if divided or mode.strategy not in WITHOUT_EFFECT:
        return there != mode.name
    return there not in {replace(mode, strategy=each).name for each in WITHOUT_EFFECT}


def group_changes(changes: Iterable[LabelChange]) -> dict[str, list[LabelChange]]:
    """The words for each kind of change -> the nodes that get it."""
    groups: dict[tuple[str, str, str], list[LabelChange]] = {}
    for change in changes:
        groups.setdefault((change.label, change.after, change.resources), []).append(change)
    return {_change_text(*key, found): found for key, found in groups.items()}


def _change_text(label: str, after: str, resources: str, found: list[LabelChange]) -> str:
    names = ", ".join(fold_names(change.node for change in found))
    if label == DRA_LABEL:
        return f"Offer the GPUs of {names} by the DRA driver ({resources})"
    if not after:
        return f"Share the GPUs of {names} as those of nodes without keys"
    return f"Share the GPUs of {names} by {after} ({resources})"


def _resources_text(sharing: NodeSharing, node: ClusterNode) -> str:
    """The resources of a node now and with its mode: nvidia.com/gpu 8 -> 32."""
    before = {name: count for name, count in node.allocatable.items() if is_gpu(name) and count}
    if node.name in sharing.dra:
        gone = [f"{name} {count} -> 0" for name, count in sorted(before.items())]
        return ", ".join(gone) or "no GPUs now"
    gpus = _gpus_of(node, sharing.default)
    if gpus is None:
        now = ", ".join(f"{name} {count}" for name, count in sorted(before.items()))
        return f"{now or 'no GPUs'} now, more is not known yet"
    after = count_resources(sharing.nodes[node.name], sharing.modes[node.name], gpus)
    return ", ".join(
        f"{name} {before.get(name, 0)} -> {after.get(name, 0)}"
        for name in sorted({*before, *after})
    )


def _gpus_of(node: ClusterNode, default: SharingMode) -> int | None:
    """The number of a node's GPUs, or None if it is unknown. With the strategy `single` GFD counts
    MIG devices instead."""
    counted = node.labels.get(GPU_COUNT, "")
    if counted.isdecimal() and len(counted) < 4 and node.labels.get(MIG_STRATEGY) != "single":
        return int(counted)
    plain = CONFIG_LABEL not in node.labels and default.sharing == default.strategy == "none"
    return node.capacity.get(GPU_RESOURCE) if plain and GPU_COUNT not in node.labels else None


def count_resources(keys: GpuSettings, mode: SharingMode, gpus: int) -> dict[str, int]:
    """What a node with this number of GPUs advertises: resource -> number."""
    found: Counter[str] = Counter()
    for index in range(gpus):
        layout = keys.layout_of(index) if mode.strategy != "none" else ()
        mixed = mode.strategy == "mixed"
        names = [mig_resource(each) if mixed else GPU_RESOURCE for each in layout or ()]
        found.update(names or [GPU_RESOURCE])
    return {name: number * mode.replicas for name, number in found.items()}
