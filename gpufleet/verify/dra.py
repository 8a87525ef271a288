"""What NVIDIA's DRA driver offers of a node's GPUs, by the ResourceSlices of a cluster. Pure.

Source: https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu (read 2026-11-29),
site/content/docs/reference/resourceslice-attributes.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpufleet.core.merge import value_at
from gpufleet.verify.answers import is_gpu_name
from gpufleet.verify.sharing import Data, count_mig_devices

RESOURCE_SLICES = ("resource.k8s.io", "v1", "resourceslices")
DRA_DRIVER = "gpu.nvidia.com"
NODE_LABEL = "gpufleet/dra-driver"  # the driver serves nodes on which it is "true"
WHOLE_GPU, MIG_PART = "gpu", "mig"  # types of devices
Slice = Mapping[str, Any]


def uses_dra(keys: Data) -> bool:
    """True if the host's keys leave its GPUs to the DRA driver."""
    return keys.get("gpu_sharing") == "dra"


def dra_problems(node: Any, keys: Data, slices: Iterable[Slice], gpus: int | None) -> list[str]:
    """How a node differs from its keys. `slices`: of all nodes; `gpus`: of its host, None if
    unknown. A GPU counts if the driver offers it or a MIG device of it. A device plugin must not
    advertise GPUs of the node, too."""
    name = node.metadata.name
    there = (node.metadata.labels or {}).get(NODE_LABEL) or "none"
    wrong = [] if there == "true" else [f"label {NODE_LABEL} is {there} instead of true"]
    resources = (node.status.allocatable or {}).items()
    twice = [each for each, count in resources if is_gpu_name(each) and count != "0"]
    wrong += [f"a device plugin advertises {each}, too" for each in twice]
    devices = list(_devices_of(name, slices))
    if not devices:
        return [*wrong, f"no ResourceSlice of {DRA_DRIVER} with a device"]
    found = {_gpu_of(each) for each in devices if _text(each, "type") in (WHOLE_GPU, MIG_PART)} - {
        ""
    }
    if gpus is None:
        return wrong if found else [*wrong, "no GPU is offered"]
    if len(found) != gpus:
        wrong.append(f"GPUs offered: {len(found)} instead of {gpus}")
    wanted, parts = count_mig_devices(keys, gpus), _count(devices, MIG_PART)
    if wanted is not None and wanted != parts:
        wrong.append(f"{parts} MIG devices are offered instead of {wanted}")
    return wrong


def _devices_of(name: str, slices: Iterable[Slice]) -> Iterator[Mapping[str, Any]]:
    """The devices of a node in the newest generation of its pool."""
    specs = [each.get("spec") or {} for each in slices]
    own = [
        spec for spec in specs if (spec.get("driver"), spec.get("nodeName")) == (DRA_DRIVER, name)
    ]
    newest = max((_generation(spec) for spec in own), default=0)
    for spec in own:
        if _generation(spec) == newest:
            yield from spec.get("devices") or ()


def _generation(spec: Mapping[str, Any]) -> int:
    found = value_at(spec, "pool.generation", 0)
    return found if isinstance(found, int) else 0


def _gpu_of(device: Mapping[str, Any]) -> str:
    """The UUID of a GPU, also of a MIG device's."""
    return _text(device, "uuid" if _text(device, "type") == WHOLE_GPU else "parentUUID")


def _count(devices: Iterable[Mapping[str, Any]], kind: str) -> int:
    return sum(_text(each, "type") == kind for each in devices)


def _text(device: Mapping[str, Any], attribute: str) -> str:
    return str(value_at(device, f"attributes.{attribute}.string") or "")
