"""What nodes advertise if their GPUs are shared as the inventory says. Pure.

Source: https://github.com/NVIDIA/k8s-device-plugin (read 2026-11-29), "Shared Access to GPUs"
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from gpufleet.core.inventory import NODES_GROUP
from gpufleet.core.merge import value_at
from gpufleet.verify.answers import is_gpu_name
from gpufleet.verify.inventory import Target

PLUGIN_LABEL = "nvidia.com/device-plugin.config"  # label: the plugin's configuration for the node
SHARING_KEYS = ("gpu_sharing", "gpu_replicas", "gpu_mig", "gpu_mig_strategy")
MIG_PROFILE = re.compile(r"\dg\.\d+gb([+-][a-z.]+)?")
RESOURCE = "nvidia.com/gpu"
MOST_GPUS = 64  # of a node; a larger label is not a count of GPUs
Data = Mapping[str, Any]


def keys_of_nodes(targets: Iterable[Target]) -> dict[str, dict[str, Any]]:
    """The keys about sharing of the inventory's GPU nodes, by name; also by the name without its
    domain if no other has that."""
    hosts = [target for target in targets if NODES_GROUP in target.groups]
    shorts = Counter(host.name.partition(".")[0] for host in hosts)
    found: dict[str, dict[str, Any]] = {}
    for host in hosts:
        short = host.name.partition(".")[0]
        keys = {key: host.data[key] for key in SHARING_KEYS if host.data.get(key) is not None}
        found |= {host.name: keys} if keys else {}
        found |= {short: keys} if keys and shorts[short] == 1 else {}
    return found


def is_shared_by_keys(keys: Data, cluster: Data) -> bool:
    """True if the keys choose a configuration of the plugin. If the user configures the plugin, a
    MIG layout alone does not. The DRA driver takes the plugin's place."""
    sharing = keys.get("gpu_sharing")
    if sharing == "dra" or (not sharing and not _divides(keys)):
        return False
    operator = cluster.get("cluster_stack") == "gpu-operator"
    values = cluster.get("gpu_operator_values" if operator else "device_plugin_values") or {}
    paths = ("devicePlugin.config", "mig.strategy") if operator else ("config", "migStrategy")
    own = any(value_at(values, path) for path in paths)
    return not own or bool(keys.get("gpu_sharing") or keys.get("gpu_mig_strategy"))


def shared_nodes(
    nodes: Iterable[Any], keys: Mapping[str, Data], cluster: Data
) -> list[tuple[Any, Data]]:
    """The GPU nodes whose hosts' keys say how pods share the GPUs, with these keys."""
    found = [(node, keys.get(node.metadata.name, {})) for node in nodes]
    return [(node, own) for node, own in found if is_shared_by_keys(own, cluster)]


def plugin_config_name(keys: Data, cluster: Data) -> str:
    """The name of the configuration that a node must have."""
    sharing, replicas, strategy = _mode(keys, cluster)
    parts = [f"mig-{strategy}"] if strategy else []
    parts += [f"{sharing}-{replicas}"] if sharing != "none" else []
    return "-".join(parts) or "whole"


def sharing_problems(
    keys: Data,
    cluster: Data,
    labels: Mapping[str, str],
    allocatable: Mapping[str, str],
    gpus: int | None = None,
) -> list[str]:
    """How label and resources of a node differ from its keys. `labels`: of the node; `gpus`: of its
    host, None if unknown. GFD counts only the GPUs of one model, and a display GPU is not offered,
    so either number may be the right one.

    Source: https://github.com/NVIDIA/k8s-device-plugin/issues/731 (read 2026-11-30)
    """
    wanted, there = plugin_config_name(keys, cluster), labels.get(PLUGIN_LABEL) or "none"
    wrong = [f"configuration {there} instead of {wanted}"] if there != wanted else []
    offered = {name: count for name, count in allocatable.items() if is_gpu_name(name)}
    counted = labels.get("nvidia.com/gpu.count") or ""
    if not (counted.isdecimal() and 0 < int(counted[:4]) <= MOST_GPUS):
        return wrong if any(count != "0" for count in offered.values()) else [*wrong, "no GPUs"]
    counts = [int(counted)]
    counts += [gpus] if gpus and _mode(keys, cluster)[2] != "single" else []
    return wrong + min((_differences(keys, cluster, offered, n) for n in counts), key=len)


def _differences(keys: Data, cluster: Data, offered: Mapping[str, str], gpus: int) -> list[str]:
    wrong, expected = [], _resources(keys, cluster, gpus)
    for name in sorted({*offered, *expected}):
        found, right = offered.get(name, "0"), expected.get(name, 0)
        wrong += [f"{name} {found} instead of {right}"] if found != str(right) else []
    return wrong


def count_mig_devices(keys: Data, gpus: int) -> int | None:
    """The MIG devices that gpu_mig gives a node with this number of GPUs, or None without it."""
    if keys.get("gpu_mig") is None:
        return None
    return sum(_layout(_of_gpu(keys["gpu_mig"], index)).total() for index in range(gpus))


def _mode(keys: Data, cluster: Data) -> tuple[str, int, str]:
    """Sharing, replicas and MIG strategy of a node; "" for no strategy."""
    sliced = cluster.get("device_plugin_time_slicing")
    sharing = keys.get("gpu_sharing") or ("time-slicing" if sliced else "none")
    asked = keys.get("gpu_replicas") or sliced
    replicas = asked if isinstance(asked, int) and sharing != "none" else 1
    usual = cluster.get("device_plugin_mig_strategy") or "none"
    strategy = keys.get("gpu_mig_strategy") or ("mixed" if usual == "none" else usual)
    return str(sharing), replicas, str(strategy) if _divides(keys) else ""


def _resources(keys: Data, cluster: Data, counted: int) -> dict[str, int]:
    """Resource -> number. `counted`: GPUs; with the strategy `single`, MIG devices."""
    _, replicas, strategy = _mode(keys, cluster)
    found: Counter[str] = Counter()
    for index in range(counted):
        layout = _layout(_of_gpu(keys.get("gpu_mig"), index)) if strategy == "mixed" else Counter()
        names = {f"nvidia.com/mig-{name.replace('+', '.')}": layout[name] for name in layout}
        found.update(names or {RESOURCE: 1})
    return {name: number * replicas for name, number in found.items()}


def _divides(keys: Data) -> bool:
    mig = keys.get("gpu_mig")
    return any(map(_layout, mig.values() if isinstance(mig, Mapping) else [mig]))


def _of_gpu(mig: Any, index: int) -> Any:
    """The layout of one GPU in a key for all GPUs or by index."""
    return mig.get(str(index), mig.get("all")) if isinstance(mig, Mapping) else mig


def _layout(value: Any) -> Counter[str]:
    """MIG profile -> number, in `3g.40gb:1, 1g.10gb:4` or a list of such texts."""
    found: Counter[str] = Counter()
    for text in value if isinstance(value, list) else str(value or "").split(","):
        profile, _, count = str(text).strip().partition(":")
        if MIG_PROFILE.fullmatch(profile):
            found[profile] += int(count[:2]) if count.isdecimal() else 1
    return found
