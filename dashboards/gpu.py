"""One GPU, or the same GPU of several nodes, with everything that its exporter reports."""

from __future__ import annotations

from dashboards import fields, model
from dashboards.model import Dashboard, Panel, Row
from dashboards.panels import XID_ALERTS, lines, of_alerts, table
from dashboards.queries import (
    A_MIG_INSTANCE,
    IDENTITY,
    PER_GPU,
    PER_INSTANCE,
    Scope,
    counted,
    gpu,
    of_instances,
    utilisation,
    workload,
)

ONE = Scope(node=True, gpu=True)
LEGEND = "{{node}} GPU {{gpu}}"
OF_INSTANCE = f"{LEGEND} instance {{{{GPU_I_ID}}}} ({{{{GPU_I_PROFILE}}}})"
USED_BY_INSTANCE = of_instances(fields.MEMORY_USED, ONE)


def _lines(title: str, about: str, *parts: tuple[str, str], unit: str = "short") -> Panel:
    """Fields that every GPU has, each with the word that ends its legend."""
    found = [(expression, model.GPU, f"{LEGEND} {word}".rstrip()) for expression, word in parts]
    return lines(title, about, *found, unit=unit)


IDENTITY_ROW = Row(
    "Which",
    (
        table(
            "GPUs",
            "The value is the last XID: 0 is none.",
            gpu(fields.XID, ONE, IDENTITY),
            model.GPU_IDENTITY,
        ),
        table(
            "Pods",
            "Who holds the GPU; the value is its memory in use, in MiB.",
            workload(fields.MEMORY_USED, ONE, f"{PER_GPU}, namespace, pod", "sum"),
            model.POD_ON_GPU,
            "mbytes",
        ),
    ),
)

WORK = Row(
    "Work",
    (
        _lines(
            "Utilisation",
            "Share of time in which something ran. A GPU can be busy all the time and do little: "
            "compare the next panel.",
            (utilisation(ONE), ""),
            unit="percentunit",
        ),
        lines(
            "Tensor cores and memory at work",
            "Share of time in which the tensor cores, and the memory's interface, were active. "
            "Needs profiling counters: Volta or newer, and no other profiler.",
            (gpu(fields.TENSOR_ACTIVE, ONE, how="avg"), model.PROFILED, f"{LEGEND} tensor cores"),
            (gpu(fields.DRAM_ACTIVE, ONE, how="avg"), model.PROFILED, f"{LEGEND} memory"),
            unit="percentunit",
        ),
        lines(
            "Processors at work",
            "Share of the processors (SMs) that had work, and of the warps that they could hold. A "
            "GPU that is busy with few of them has room for more.",
            (gpu(fields.SM_ACTIVE, ONE, how="avg"), model.PROFILED, f"{LEGEND} active"),
            (gpu(fields.SM_OCCUPANCY, ONE, how="avg"), model.PROFILED, f"{LEGEND} occupancy"),
            unit="percentunit",
        ),
        _lines(
            "Memory",
            "What is in use and what is free; a part that the driver keeps is in neither.",
            (gpu(fields.MEMORY_USED, ONE, how="sum"), "used"),
            (gpu(fields.MEMORY_FREE, ONE, how="sum"), "free"),
            unit="mbytes",
        ),
        _lines(
            "Copies and video",
            "Share of time in which memory was read or written, and video was en- or decoded.",
            (gpu(fields.COPY_UTILISATION, ONE), "memory"),
            (gpu(fields.ENCODER, ONE), "encoder"),
            (gpu(fields.DECODER, ONE), "decoder"),
            unit="percent",
        ),
        lines(
            "Data over PCIe",
            "Headers included.",
            (gpu(fields.PCIE_SENT, ONE), model.PROFILED, f"{LEGEND} sent"),
            (gpu(fields.PCIE_RECEIVED, ONE), model.PROFILED, f"{LEGEND} received"),
            unit="Bps",
        ),
        lines(
            "Data over NVLink",
            "Both directions of all its links, where it has any.",
            (f"{gpu(fields.NVLINK, ONE)} * 1e6", model.NVLINKED, LEGEND),
            unit="Bps",
        ),
    ),
)

STATE = Row(
    "State",
    (
        of_alerts(
            _lines(
                "Temperature",
                "Of the chip and of its memory; models without a sensor there say 0.",
                (gpu(fields.TEMPERATURE, ONE), "chip"),
                (gpu(fields.MEMORY_TEMPERATURE, ONE), "memory"),
                unit="celsius",
            ),
            "GpuHot",
            "GpuMemoryHot",
            "GpuThermalSlowdown",
        ),
        _lines(
            "Power",
            "As measured now, and on average by the energy that was counted.",
            (gpu(fields.POWER, ONE), "now"),
            (f"{counted(fields.ENERGY, ONE)} / 1000", "average"),
            unit="watt",
        ),
        of_alerts(
            _lines(
                "Clocks",
                "Of the processors and of the memory.",
                (f"{gpu(fields.SM_CLOCK, ONE)} * 1e6", "processors"),
                (f"{gpu(fields.MEMORY_CLOCK, ONE)} * 1e6", "memory"),
                unit="hertz",
            ),
            "GpuThermalSlowdown",
            "GpuPowerBrake",
            "GpuPowerCapped",
        ),
        of_alerts(
            _lines(
                "XID",
                "The code of the last one; 0 before the first. A repeat of the same is not seen "
                "here.",
                (gpu(fields.XID, ONE), ""),
            ),
            *XID_ALERTS,
        ),
        of_alerts(
            lines(
                "Remapped rows of memory",
                "Uncorrectable ones cost a job. If remapping fails, replace the GPU. Ampere and "
                "newer.",
                (gpu(fields.ROWS_UNCORRECTABLE, ONE), model.REMAPPING, f"{LEGEND} uncorrectable"),
                (gpu(fields.ROWS_CORRECTABLE, ONE), model.REMAPPING, f"{LEGEND} correctable"),
                (gpu(fields.REMAP_FAILED, ONE), model.REMAPPING, f"{LEGEND} failure"),
            ),
            "GpuRowRemapFailed",
            "GpuRowRemapLimit",
            "GpuRowsRemapped",
        ),
        of_alerts(
            _lines(
                "PCIe replays",
                "Packets that were sent again, per minute.",
                (f"{counted(fields.PCIE_REPLAYS, ONE)} * 60", ""),
            ),
            "GpuPcieReplays",
        ),
    ),
)

INSTANCES = Row(
    "MIG instances",
    (
        lines(
            "Utilisation by instance",
            "Share of time in which a MIG instance ran something. Empty without MIG. What is not "
            "in this row is measured for the whole GPU, such as power and temperature.",
            (of_instances(fields.ENGINE_ACTIVE, ONE), model.INSTANCE, OF_INSTANCE),
            unit="percentunit",
        ),
        lines(
            "Memory in use by instance",
            "Share of the memory of a MIG instance.",
            (
                f"{USED_BY_INSTANCE} / "
                f"({USED_BY_INSTANCE} + {of_instances(fields.MEMORY_FREE, ONE)})",
                model.INSTANCE,
                OF_INSTANCE,
            ),
            unit="percentunit",
        ),
        lines(
            "Tensor cores and memory at work by instance",
            "As above for GPUs.",
            (of_instances(fields.TENSOR_ACTIVE, ONE), model.INSTANCE, f"{OF_INSTANCE} tensor"),
            (of_instances(fields.DRAM_ACTIVE, ONE), model.INSTANCE, f"{OF_INSTANCE} memory"),
            unit="percentunit",
        ),
        table(
            "Pods by instance",
            "Who holds the MIG instance; the value is its memory in use, in MiB.",
            workload(
                fields.MEMORY_USED, ONE, f"{PER_INSTANCE}, namespace, pod", only=A_MIG_INSTANCE
            ),
            model.POD_ON_INSTANCE,
            "mbytes",
        ),
    ),
)

DASHBOARD = Dashboard(
    "gpu",
    "GPU in detail",
    "Everything that the exporter reports about one GPU, or several.",
    ("cluster", "node", "gpu"),
    (IDENTITY_ROW, WORK, INSTANCES, STATE),
)
