"""What a node offers of GPUs, and what it lacks of that later. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpufleet.upgrade.pods import GPU

LONG = 10  # digits of what is no number of GPUs


def gpus_of(node: Mapping[str, Any]) -> dict[str, str]:
    """What a node offers of GPUs."""
    offered = (node.get("status") or {}).get("allocatable") or {}
    found = {name: str(count) for name, count in offered.items() if name.startswith(GPU)}
    return {name: count for name, count in found.items() if count != "0"}


def gpu_of(offered: Iterable[str]) -> str:
    """The resource that a pod which checks a node requests: a GPU, or a part of one, before other
    devices of NVIDIA's, such as network interfaces; "" without any."""
    order = (f"{GPU}gpu", f"{GPU}mig-", GPU)
    found = [name for begins in order for name in sorted(offered) if name.startswith(begins)]
    return next(iter(found), "")


def less(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """What a node offers less than before, as text; "" if nothing. A new driver may offer more: a
    GPU that the old one had lost."""
    lacking = [f"{name}: {now.get(name, '0')} of {count}" for name, count in before.items()
               if _is_less(now.get(name, "0"), count)]  # fmt: skip
    return ", ".join(lacking)


def _is_less(now: str, before: str) -> bool:
    if now.isdecimal() and before.isdecimal() and max(len(now), len(before)) < LONG:
        return int(now) < int(before)
    return now != before
