"""Plans the labels of nodes that say how they offer their GPUs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpufleet.core.findings import Finding
from gpufleet.core.names import fold_names
from gpufleet.gpu.layouts import mig_resource
from gpufleet.gpu.settings import GpuSettings
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.node_sharing import (
    CONFIG_LABEL,
    OWN_LABELS,
    NodeSharing,
    SharingMode,
    has_mig,
)
from gpufleet.kube.facts import ClusterFacts, ClusterNode
from gpufleet.kube.node_answers import DRA_LABEL, GPU_RESOURCE, is_dra_node, is_gpu

GPU_COUNT, MIG_STRATEGY = "nvidia.com/gpu.count", "nvidia.com/mig.strategy"  # labels of GFD
WITHOUT_EFFECT = ("none", "mixed")  # strategies that leave whole GPUs as they are


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
    if has_mig(node) or mode.strategy not in WITHOUT_EFFECT:
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
