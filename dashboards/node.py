"""Nodes: the activity of each GPU of the selected machines, and the pods that use them."""

from __future__ import annotations

from dashboards import fields, model
from dashboards.machine import MACHINE
from dashboards.model import Dashboard, Row
from dashboards.panels import lines, number, of_alerts, table
from dashboards.queries import (
    PER_GPU,
    PER_POD,
    Scope,
    allocatable,
    counted,
    free,
    gpu,
    held,
    installed,
    memory_share,
    or_zero,
    utilisation,
    workload_utilisation,
)

NODE = Scope(node=True)
LEGEND = "{{node}} GPU {{gpu}}"

NOW = Row(
    "Now",
    (
        number("GPUs", "GPUs that the nodes say they have.", f"sum({installed(NODE, 'cluster')})"),
        of_alerts(
            number(
                "GPUs that report",
                "GPUs whose exporter was scraped within the last five minutes.",
                or_zero(f"count({gpu(fields.REPORTED, NODE)})"),
            ),
            "GpuMetricsMissing",
        ),
        of_alerts(
            number(
                "Unhealthy GPUs",
                "GPUs that the device plugin no longer offers.",
                f"sum({installed(NODE, 'cluster')} - {allocatable(NODE, 'cluster')})",
                steps=(1, 2),
            ),
            "GpuNotAllocatable",
        ),
        number(
            "GPUs held by pods",
            "Requests of pods that run on the nodes.",
            or_zero(f"sum({held(NODE, 'cluster')})"),
        ),
        number(
            "GPUs free for pods",
            "Of nodes that are ready and not cordoned, those that no pod holds.",
            or_zero(f"sum({free(NODE)})"),
        ),
        number(
            "Power",
            "What the GPUs draw together.",
            or_zero(f"sum({gpu(fields.POWER, NODE)})"),
            "watt",
        ),
    ),
)

WORK = Row(
    "Work",
    (
        lines(
            "Utilisation",
            "Share of time in which a GPU ran something.",
            (utilisation(NODE), model.GPU, LEGEND),
            unit="percentunit",
        ),
        lines(
            "Memory in use",
            "Share of a GPU's memory.",
            (memory_share(NODE, PER_GPU), model.GPU, LEGEND),
            unit="percentunit",
        ),
        lines(
            "Data over PCIe",
            "Both directions, headers included.",
            (
                f"{gpu(fields.PCIE_SENT, NODE)} + {gpu(fields.PCIE_RECEIVED, NODE)}",
                model.PROFILED,
                LEGEND,
            ),
            unit="Bps",
        ),
        lines(
            "Data over NVLink",
            "Both directions of all links of a GPU, where it has any.",
            (f"{gpu(fields.NVLINK, NODE)} * 1e6", model.NVLINKED, LEGEND),
            unit="Bps",
        ),
    ),
)

STATE = Row(
    "State",
    (
        of_alerts(
            lines(
                "Temperature",
                "Of the GPU's chip. What is too hot depends on the model.",
                (gpu(fields.TEMPERATURE, NODE), model.GPU, LEGEND),
                unit="celsius",
            ),
            "GpuHot",
            "GpuThermalSlowdown",
        ),
        lines(
            "Power by GPU",
            "What each GPU draws.",
            (gpu(fields.POWER, NODE), model.GPU, LEGEND),
            unit="watt",
        ),
        of_alerts(
            lines(
                "SM clock",
                "It falls under a power limit, when it is too hot, and when a GPU has nothing to "
                "do.",
                (f"{gpu(fields.SM_CLOCK, NODE)} * 1e6", model.GPU, LEGEND),
                unit="hertz",
            ),
            "GpuThermalSlowdown",
            "GpuPowerBrake",
            "GpuPowerCapped",
        ),
        of_alerts(
            lines(
                "PCIe replays",
                "Packets that were sent again, per minute: a bad riser, cable or slot.",
                (f"{counted(fields.PCIE_REPLAYS, NODE)} * 60", model.GPU, LEGEND),
            ),
            "GpuPcieReplays",
        ),
    ),
)

PODS = Row(
    "Pods",
    (
        table(
            "Pods that hold GPUs",
            "The value is how many GPUs a pod asked for.",
            held(NODE, f"{PER_POD}, node"),
            model.POD_ON_NODE,
        ),
        table(
            "GPUs and their pods",
            "The value is the utilisation.",
            workload_utilisation(NODE),
            model.POD_ON_GPU,
            "percentunit",
        ),
    ),
)

DASHBOARD = Dashboard(
    "node",
    "GPU nodes",
    "The GPUs of one node or a few, one line for each.",
    ("cluster", "node"),
    (NOW, WORK, STATE, PODS, MACHINE),
)
