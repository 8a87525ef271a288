"""Capacity: GPUs installed, offered, held and busy, and the reasons for the differences."""

from __future__ import annotations

from dashboards import fields, model
from dashboards.model import Dashboard, Row
from dashboards.panels import bars, lines, number, of_alerts, table
from dashboards.queries import (
    HARDLY,
    IDENTITY,
    PER_GPU,
    PER_NODE,
    PER_POD,
    Scope,
    allocatable,
    at_work,
    free,
    free_instances,
    held,
    idle,
    installed,
    or_zero,
    usable,
    utilisation,
    waiting,
    workload,
)

NODE = Scope(node=True)
HELD = f"sum({held(NODE, PER_NODE)})"

NOW = Row(
    "Now",
    (
        number("Installed", "GPUs that nodes say they have.", f"sum({installed(NODE, PER_NODE)})"),
        number(
            "Usable",
            "Healthy GPUs of nodes that are ready and not cordoned.",
            or_zero(f"sum({usable(NODE, PER_NODE)})"),
        ),
        number("Held", "GPUs that pods hold, wherever they are.", or_zero(HELD)),
        number("Free", "Usable GPUs that no pod holds.", or_zero(f"sum({free(NODE)})")),
        number(
            "Most free on one node",
            "The largest pod that would fit now.",
            or_zero(f"max({free(NODE)})"),
        ),
        number(
            "Waited for",
            "GPUs that pods ask for that no node has taken.",
            or_zero(f"sum({waiting(NODE, PER_POD)})"),
            steps=(1, 16),
        ),
    ),
)

OVER_TIME = Row(
    "Allocated against used",
    (
        lines(
            "Installed, usable, held, at work",
            "The gap between held and at work is what people keep and do not use.",
            (f"sum({installed(NODE, PER_NODE)})", model.ONE, "installed"),
            (or_zero(f"sum({usable(NODE, PER_NODE)})"), model.ONE, "usable"),
            (or_zero(HELD), model.ONE, "held by pods"),
            (or_zero(at_work(NODE)), model.ONE, "at work"),
            width=16,
        ),
        number(
            "Held of what is installed",
            "Share of the installed GPUs.",
            or_zero(f"{HELD} / sum({installed(NODE, PER_NODE)})"),
            "percentunit",
        ),
        number(
            "Work of what is installed",
            "Utilisation averaged over all installed GPUs; one that does not report counts as 0.",
            or_zero(f"sum({utilisation(NODE)}) / sum({installed(NODE, PER_NODE)})"),
            "percentunit",
        ),
    ),
)

NODES = Row(
    "Nodes",
    (
        bars(
            "Free by node",
            "Of nodes that take pods: jobs that need a whole node look here.",
            (free(NODE), model.USABLE_NODE, "{{node}}"),
        ),
        lines(
            "Held by node",
            "Requests of pods that run there.",
            (held(NODE, PER_NODE), model.NODE_WITH_PODS, "{{node}}"),
            stacked=True,
        ),
        lines(
            "Held by namespace",
            "Requests of pods that run.",
            (held(NODE, "cluster, namespace"), model.NAMESPACE, "{{namespace}}"),
            stacked=True,
        ),
        of_alerts(
            table(
                "Nodes that offer fewer GPUs than they have",
                "The value is how many are missing.",
                f"{installed(NODE, PER_NODE)} - {allocatable(NODE, PER_NODE)} > 0",
                model.UNHEALTHY_NODE,
            ),
            "GpuNotAllocatable",
        ),
        of_alerts(
            table(
                "MIG devices that no pod holds",
                "By resource, with the MIG strategy mixed; the panels about GPUs leave them out.",
                free_instances(NODE),
                model.MIG_DEVICES,
            ),
            "GpuMigLayoutLost",
        ),
    ),
)

GAPS = Row(
    "What stands between",
    (
        table(
            "Held and idle",
            "The value is the utilisation, averaged over half an hour.",
            idle(NODE),
            model.IDLE,
            "percentunit",
            8,
        ),
        table(
            "At work without a pod",
            "Processes outside Kubernetes use them. The value is the utilisation.",
            f"({utilisation(NODE, IDENTITY)}) > {HARDLY} "
            f"unless on ({PER_GPU}) {workload(fields.REPORTED, NODE, PER_GPU)}",
            model.UNCLAIMED,
            "percentunit",
            8,
        ),
        of_alerts(
            table(
                "Pods that wait",
                "The value is how many GPUs they ask for.",
                waiting(NODE, PER_POD),
                model.WAITING_POD,
                width=8,
            ),
            "GpuPodsWaiting",
        ),
    ),
)

DASHBOARD = Dashboard(
    "capacity",
    "GPU capacity",
    "What is installed, what pods hold of it, and what works.",
    ("cluster", "node"),
    (NOW, OVER_TIME, NODES, GAPS),
)
