"""Workloads: GPUs that namespaces and pods hold, and how much they use them."""

from __future__ import annotations

from dashboards import fields, model
from dashboards.model import Dashboard, Row
from dashboards.panels import bars, lines, number, of_alerts, table
from dashboards.queries import (
    KWH,
    PER_POD,
    PER_POD_GPU,
    Scope,
    held,
    held_hours,
    idle,
    joined,
    or_zero,
    waiting,
    workload,
    workload_power,
    workload_utilisation,
)

SPACE = Scope(namespace=True)
PER_SPACE = "cluster, namespace"
POD = "{{namespace}}/{{pod}}"
USED = workload(fields.MEMORY_USED, SPACE, PER_POD, "sum")
FREE = workload(fields.MEMORY_FREE, SPACE, PER_POD, "sum")
POWER = workload_power(SPACE)
ENERGY = workload(fields.ENERGY, SPACE, PER_POD_GPU, over="increase({}[$__range])")

NOW = Row(
    "Now",
    (
        number(
            "GPUs held", "Requests of pods that run.", or_zero(f"sum({held(SPACE, PER_SPACE)})")
        ),
        number(
            "Pods with GPUs",
            "Pods that hold at least one.",
            or_zero(f"count({held(SPACE, PER_POD)})"),
        ),
        number(
            "Utilisation of what is held",
            "Share of time in which the GPUs that pods hold ran something.",
            or_zero(f"avg({workload_utilisation(SPACE)})"),
            "percentunit",
        ),
        number(
            "Held and idle",
            "GPUs that a pod holds and that worked for less than 5 % of the last half hour.",
            or_zero(f"count({idle(SPACE)})"),
            steps=(1, 8),
        ),
        number(
            "GPUs waited for",
            "What pods ask for that no node has taken.",
            or_zero(f"sum({waiting(SPACE, PER_SPACE)})"),
            steps=(1, 16),
        ),
        number(
            "Power",
            "What the GPUs that pods hold draw together.",
            or_zero(f"sum({POWER})"),
            "watt",
        ),
    ),
)

SPACES = Row(
    "Namespaces",
    (
        lines(
            "GPUs held by namespace",
            "Requests of pods that run.",
            (held(SPACE, PER_SPACE), model.NAMESPACE, "{{namespace}}"),
            stacked=True,
        ),
        lines(
            "Utilisation by namespace",
            "Of the GPUs that its pods hold, averaged over them.",
            (
                joined("avg", PER_SPACE, workload_utilisation(SPACE)),
                model.REPORTING_NAMESPACE,
                "{{namespace}}",
            ),
            unit="percentunit",
        ),
        lines(
            "Power by namespace",
            "What the GPUs of its pods draw together; pods that share a GPU share its power.",
            (
                joined("sum", PER_SPACE, POWER),
                model.REPORTING_NAMESPACE,
                "{{namespace}}",
            ),
            unit="watt",
            stacked=True,
        ),
        bars(
            "Energy by namespace",
            "Of its GPUs, over the time that the dashboard shows; a GPU that pods share counts for "
            "each of them.",
            (
                f"{joined('sum', PER_SPACE, ENERGY)} / {KWH:.1e}",
                model.REPORTING_NAMESPACE,
                "{{namespace}}",
            ),
            unit="kwatth",
        ),
        bars(
            "GPU hours by namespace",
            "What its pods held, over the time that the dashboard shows, whether they used it or "
            "not: 8 GPUs for 3 hours are 24.",
            (held_hours(SPACE, PER_SPACE), model.NAMESPACE, "{{namespace}}"),
            unit="h",
        ),
    ),
)

PODS = Row(
    "Pods",
    (
        lines(
            "Utilisation by pod",
            "Of the GPUs that it holds, averaged over them.",
            (joined("avg", PER_POD, workload_utilisation(SPACE)), model.REPORTING_POD, POD),
            unit="percentunit",
        ),
        lines(
            "Memory in use by pod",
            "Share of the memory of the GPUs that it holds.",
            (f"{USED} / ({USED} + {FREE})", model.REPORTING_POD, POD),
            unit="percentunit",
        ),
        lines(
            "Tensor cores at work by pod",
            "Share of time in which they were active, averaged over the GPUs of the pod.",
            (workload(fields.TENSOR_ACTIVE, SPACE, PER_POD, "avg"), model.PROFILED_POD, POD),
            unit="percentunit",
        ),
        table(
            "Pods that hold GPUs",
            "The value is how many GPUs a pod asked for.",
            held(SPACE, f"{PER_POD}, node"),
            model.POD_ON_NODE,
        ),
        table(
            "GPUs that are held and idle",
            "The value is the utilisation, averaged over half an hour.",
            idle(SPACE),
            model.IDLE,
            "percentunit",
        ),
        of_alerts(
            table(
                "Pods that wait for GPUs",
                "The value is how many they ask for.",
                waiting(SPACE, PER_POD),
                model.WAITING_POD,
            ),
            "GpuPodsWaiting",
        ),
    ),
)

DASHBOARD = Dashboard(
    "workload",
    "GPU workloads",
    "What namespaces and their pods hold, and what they make of it.",
    ("cluster", "namespace"),
    (NOW, SPACES, PODS),
)
