"""Fleet overview: inventory, use and problems."""

from __future__ import annotations

from dashboards import fields, model
from dashboards.model import Dashboard, Row
from dashboards.panels import XID_ALERTS, bars, lines, number, of_alerts, table
from dashboards.queries import (
    IDENTITY,
    PER_NODE,
    Scope,
    allocatable,
    at_work,
    energy,
    gpu,
    gpu_nodes,
    held,
    installed,
    joined,
    memory_share,
    not_ready,
    or_zero,
    utilisation,
)

ALL = Scope()
REPORTING = f"count({gpu(fields.REPORTED, ALL)})"

NOW = Row(
    "Now",
    (
        number("GPUs", "GPUs that the nodes say they have.", f"sum({installed(ALL, 'cluster')})"),
        of_alerts(
            number(
                "GPUs that report",
                "GPUs whose exporter was scraped within the last five minutes.",
                or_zero(REPORTING),
            ),
            "GpuMetricsMissing",
        ),
        of_alerts(
            number(
                "Nodes not ready",
                "Nodes with GPUs whose kubelet does not say that it is ready.",
                or_zero(f"count({not_ready(ALL)})"),
                steps=(1, 2),
            ),
            "GpuNodeNotReady",
        ),
        of_alerts(
            number(
                "With an XID",
                "GPUs whose last XID is not 0. The exporter keeps it until it restarts.",
                or_zero(f"count({gpu(fields.XID, ALL)} > 0)"),
                steps=(1, 2),
            ),
            *XID_ALERTS,
        ),
        number(
            "Allocated",
            "Share of the GPUs that pods hold.",
            or_zero(f"sum({held(ALL, 'cluster')}) / sum({installed(ALL, 'cluster')})"),
            "percentunit",
        ),
        number(
            "Power",
            "What all GPUs draw together; the rest of the machines comes on top.",
            f"sum({gpu(fields.POWER, ALL)})",
            "watt",
        ),
    ),
)

USE = Row(
    "Use",
    (
        lines(
            "Utilisation by node",
            "Share of time in which the GPUs of a node ran something, averaged over them.",
            (joined("avg", PER_NODE, utilisation(ALL)), model.REPORTING_NODE, "{{node}}"),
            unit="percentunit",
        ),
        lines(
            "GPUs held and at work",
            "Held: requested by pods that run. At work: busy for more than 5 % of the time.",
            (f"sum({installed(ALL, 'cluster')})", model.ONE, "installed"),
            (or_zero(f"sum({held(ALL, 'cluster')})"), model.ONE, "held by pods"),
            (or_zero(at_work(ALL)), model.ONE, "at work"),
        ),
        lines(
            "Memory in use by node",
            "Share of the memory of a node's GPUs.",
            (memory_share(ALL, PER_NODE), model.REPORTING_NODE, "{{node}}"),
            unit="percentunit",
        ),
        lines(
            "Power by node",
            "What the GPUs of a node draw together.",
            (
                joined("sum", PER_NODE, gpu(fields.POWER, ALL)),
                model.REPORTING_NODE,
                "{{node}}",
            ),
            unit="watt",
            stacked=True,
        ),
    ),
)

HEALTH = Row(
    "Health",
    (
        lines(
            "Nodes over time",
            "Nodes with GPUs, and those of them that Kubernetes does not reach.",
            (or_zero(f"count({gpu_nodes(ALL)})"), model.ONE, "nodes"),
            (or_zero(f"count({not_ready(ALL)})"), model.ONE, "not ready"),
            width=8,
        ),
        lines(
            "GPUs over time",
            "GPUs that nodes have, that report, and that the device plugin does not offer because "
            "they are unhealthy.",
            (f"sum({installed(ALL, 'cluster')})", model.ONE, "installed"),
            (or_zero(REPORTING), model.ONE, "report"),
            (
                f"sum({installed(ALL, 'cluster')} - {allocatable(ALL, 'cluster')})",
                model.ONE,
                "unhealthy",
            ),
            width=8,
        ),
        bars(
            "Energy by node",
            "Of its GPUs, over the time that the dashboard shows.",
            (joined("sum", PER_NODE, energy(ALL)), model.MEASURED_NODE, "{{node}}"),
            unit="kwatth",
            width=8,
        ),
        of_alerts(
            lines(
                "Hottest GPU of each node",
                "The temperature of the hottest GPU. What is too hot depends on the model.",
                (gpu(fields.TEMPERATURE, ALL, PER_NODE), model.REPORTING_NODE, "{{node}}"),
                unit="celsius",
            ),
            "GpuHot",
            "GpuThermalSlowdown",
        ),
        bars(
            "GPUs by model",
            "How many of each model report.",
            (
                f"count by (modelName) ({gpu(fields.REPORTED, ALL, IDENTITY)})",
                model.MODEL,
                "{{modelName}}",
            ),
        ),
        of_alerts(
            table(
                "GPUs with an XID",
                "The value is the code of the last XID. NVIDIA's catalogue says what it means.",
                f"{gpu(fields.XID, ALL, IDENTITY)} > 0",
                model.XID,
                width=8,
            ),
            *XID_ALERTS,
        ),
        of_alerts(
            table(
                "GPUs without spare rows",
                "Their memory could not remap a faulty row: to be replaced.",
                f"{gpu(fields.REMAP_FAILED, ALL, IDENTITY)} > 0",
                model.REMAP_FAILED,
                width=8,
            ),
            "GpuRowRemapFailed",
        ),
        of_alerts(
            table(
                "Nodes that are not ready",
                "Nodes with GPUs that Kubernetes does not reach.",
                not_ready(ALL),
                model.NODE_DOWN,
                width=8,
            ),
            "GpuNodeNotReady",
        ),
    ),
)

DASHBOARD = Dashboard(
    "fleet",
    "GPU fleet",
    "All GPUs of a cluster: how many there are, what they do, and which need a look.",
    ("cluster",),
    (NOW, USE, HEALTH),
)
