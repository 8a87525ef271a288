"""The GPUs: each on the bus has a device node and answers."""

from __future__ import annotations

from gpufleet.core.names import count_noun
from gpufleet.verify.findings import hosts as kinds
from gpufleet.verify.node import CheckedNode


def test_device_nodes(node: CheckedNode) -> None:
    """/dev/nvidia0 to n, nvidiactl and nvidia-uvm are character devices."""
    node.need_loaded()
    names = [*(f"nvidia{number}" for number in range(len(node.gpus))), "nvidiactl", "nvidia-uvm"]
    there = node.section("device-nodes").lines
    missing = [f"/dev/{name}" for name in names if f"/dev/{name}" not in there]
    expected = f"{count_noun(len(names), 'device node')} for {count_noun(len(node.gpus), 'GPU')}"
    node.expect(not missing, kinds.DEVICE_NODES, expected, f"missing: {', '.join(missing)}")


def test_gpu_count(node: CheckedNode) -> None:
    """nvidia-smi lists as many GPUs as the PCI bus."""
    node.need(node.gpus or node.driver, "the host has no NVIDIA GPU")
    node.expect(bool(node.gpus), kinds.GPU_COUNT, "at least 1 GPU on the PCI bus", "0")
    node.need_loaded()
    taken = node.section("driver-gpus").lines  # the driver keeps those that fell off the bus
    lost = sorted({slot.lower() for slot in taken} - set(node.gpus)) if node.gpus else []
    expected = "every GPU that the driver has on the PCI bus"
    node.expect(not lost, kinds.GPU_COUNT, expected, f"missing: {', '.join(lost)}")
    smi = node.section("smi-list")
    # A mismatch (18) or a missing library (12) is the library's matter, not the GPUs'.
    node.need(smi.status not in (12, 18), f"nvidia-smi cannot start (GF730): {smi.last}")
    node.need(smi.status != 127, "nvidia-smi is not installed (GF720)")
    expected = f"{count_noun(len(node.gpus), 'GPU')} in `nvidia-smi -L`, as on the PCI bus"
    node.expect(smi.ok, kinds.GPU_COUNT, expected, f"exit status {smi.status}: {smi.last}")
    found = sum(line.startswith("GPU ") for line in smi.lines)
    node.expect(found == len(node.gpus), kinds.GPU_COUNT, expected, str(found))
