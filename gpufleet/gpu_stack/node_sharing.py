"""Plans how each node offers its GPUs: the device plugin shares them by a configuration that a
label of the node names, or another label gives the node to the DRA driver. Pure.

Sources: https://github.com/NVIDIA/k8s-device-plugin (read 2026-11-29): README.md, "Updating
Per-Node Configuration With a Node Label"; internal/rm/rm.go for the names of resources
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.load_settings import load_role
from gpufleet.core.merge import value_at
from gpufleet.gpu.layouts import mig_resource
from gpufleet.gpu.settings import GpuSettings
from gpufleet.gpu.sharing import check_sharing, divides_gpus
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.builder import OPERATOR
from gpufleet.kube.facts import ClusterFacts, ClusterNode
from gpufleet.kube.node_answers import DRA_LABEL, GPU_RESOURCE

HostData = Mapping[str, Mapping[str, Any]]  # host of the inventory -> its data
CONFIG_LABEL = "nvidia.com/device-plugin.config"  # of a node; its value: a configuration
OWN_LABELS = frozenset((CONFIG_LABEL, DRA_LABEL))  # gpufleet sets one of them per node, or none
SHARED = "shared"  # the configuration of nodes without a label, with device_plugin_time_slicing
UNSHARED = "default"  # the same without it
MIG = mig_resource("")  # beginning of the resources of MIG devices
MIG_CONFIG = re.compile(r"mig-(mixed|single)(?:-time-slicing-(\d+))?")  # names of configurations
PRODUCT = "nvidia.com/gpu.product"  # label of GFD; with the strategy `single` it names the profile


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
class NodeSharing:
    """What the inventory requests. `default`: for nodes without keys; `nodes`: node -> its keys;
    `modes`: node -> how the device plugin shares its GPUs; `dra`: nodes of the DRA driver; `kept`:
    nodes whose mode stays until their MIG devices are gone."""

    default: SharingMode
    nodes: Mapping[str, GpuSettings] = field(default_factory=dict)
    modes: Mapping[str, SharingMode] = field(default_factory=dict)
    dra: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

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

    def configs(self, *, keep: bool = False) -> tuple[PluginConfig, ...]:
        """The plugin's configurations, the default first. () if the plugin needs none; with `keep`
        the default alone."""
        if not (self.modes or self.default.sharing != "none" or keep):
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
    kept = {
        node.name: mode
        for node in facts.nodes
        if node.name in modes and (mode := _kept_mode(node, nodes[node.name]))
    }
    return NodeSharing(default, nodes, modes | kept, dra, tuple(kept))


def _kept_mode(node: ClusterNode, keys: GpuSettings) -> SharingMode | None:
    """The mode of the present label, if the keys ask for no MIG and the node still has MIG devices:
    the plugin would offer the divided GPUs as whole ones."""
    found = MIG_CONFIG.fullmatch(node.labels.get(CONFIG_LABEL, ""))
    if not found or CONFIG_LABEL not in node.own_labels or not has_mig(node):
        return None
    if keys.mig is None or divides_gpus(keys):
        return None
    strategy, replicas = found.groups()
    return SharingMode("time-slicing" if replicas else "none", int(replicas or 1), strategy)


def has_mig(node: ClusterNode) -> bool:
    """True if a node offers MIG devices, as resources of their own or as GPUs."""
    offered = any(node.allocatable[name] for name in node.allocatable if name.startswith(MIG))
    return offered or "-MIG-" in node.labels.get(PRODUCT, "")


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
