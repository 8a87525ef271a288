"""The rules that Prometheus evaluates: recorded series and alerts about GPUs. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Mapping
from typing import Any

from gpufleet.core.yaml_text import yaml_text
from gpufleet.monitoring.alert_models import Alert, AlertCatalog
from gpufleet.monitoring.xids import load_xids

RULE_GROUP = "gpufleet"
RULE_NAME = "gpufleet-gpu"
API_VERSION = "monitoring.coreos.com/v1"
OF_ALL = ("cluster.", "host.peers")  # checks of the doctor on more than one host
_NODE = "{{ $labels.node }}"
_OF_AN_INSTANCE = ("GPU_I_ID", "GPU_I_PROFILE")  # labels that a GPU has for its MIG instances only
_MACRO = re.compile(r"\[\[(\w+)(?: (.+?))?\]\]")

# The GPU, by the alert's own labels, and the pods that used it: queried when the alert is
# sent, so that the alert itself stays one while pods come and go.
_GPU = "GPU {{ $labels.gpu }} ({{ $labels.UUID }}) of node {{ $labels.node }}"
_PODS = (
    '{{ with printf "count by (namespace, pod) (last_over_time('
    "PREFIX:workload{UUID='%s'}[15m]))\" $labels.UUID | query }}"
    "{{ range $i, $s := . }}{{ if $i }}, {{ end }}{{ $s.Labels.namespace }}/{{ $s.Labels.pod }}"
    "{{ end }}{{ else }}none{{ end }}"
)


def missing_fields(
    catalog: AlertCatalog, alert: Alert, collected: Collection[str]
) -> tuple[str, ...]:
    """The fields that an alert needs and an exporter of `collected` does not collect."""
    there = set(collected) | set(alert.optional)
    for group in catalog.alternatives:
        if there & set(group):
            there |= set(group)
    return tuple(field for field in catalog.fields(alert.expr) if field not in there)


def rule_groups(catalog: AlertCatalog, runbooks: str | None = None) -> list[dict[str, Any]]:
    """`groups` of a rules file. `runbooks`: URL of the pages' folder, or None for no links.

    One group: Prometheus evaluates it in order, so alerts see the recorded series of their moment.
    """
    recorded = re.compile(rf"\b{catalog.prefix}:(DCGM_[A-Z0-9_]+)")
    texts = [alert.expr for alert in catalog.alerts]
    texts += [record.expr for record in catalog.records]
    fields = sorted({field for text in texts for field in recorded.findall(text)})
    records = [{"record": f"{catalog.prefix}:{f}", "expr": field_expr(catalog, f)} for f in fields]
    records += [
        {"record": f"{catalog.prefix}:{record.name}", "expr": expand_macros(catalog, record.expr)}
        for record in catalog.records
    ]
    alerts = [_rule(catalog, alert, runbooks) for alert in catalog.alerts]
    return [{"name": RULE_GROUP, "rules": [*records, *alerts]}]


def _rule(catalog: AlertCatalog, alert: Alert, runbooks: str | None) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": _alert_expr(catalog, alert),
        "for": alert.for_,
        "labels": alert.labels,
        "annotations": {
            "summary": expand_macros(catalog, alert.summary),
            "description": expand_macros(catalog, alert.description),
            **_doctor_annotation(catalog, alert),
            **({"runbook_url": f"{runbooks.rstrip('/')}/{alert.name}.md"} if runbooks else {}),
        },
    }


def _alert_expr(catalog: AlertCatalog, alert: Alert) -> str:
    """The expression of an alert. About a GPU that is divided it sends one alert, because the
    exporter repeats values of the GPU, such as its temperature, for each MIG instance; except where
    an instance has a value of its own."""
    expr = expand_macros(catalog, alert.expr)
    if "[[gpu]]" not in alert.summary or alert.per_instance:
        return expr
    return _call(f"max without ({', '.join(_OF_AN_INSTANCE)})", [expr])


def _doctor_annotation(catalog: AlertCatalog, alert: Alert) -> dict[str, str]:
    """The doctor's commands, with the node that the alert names."""
    by_node = _NODE in expand_macros(catalog, alert.summary)
    commands = doctor_commands(alert.doctor, _NODE if by_node else "NODE")
    return {"doctor": "; ".join(commands)} if commands else {}


def doctor_commands(checks: Collection[str], node: str = "NODE") -> tuple[str, ...]:
    """The commands that make these checks of the doctor: on a node, and on clusters and peers,
    which a limit would leave out."""
    of_all = [check for check in checks if check.startswith(OF_ALL)]
    of_node = [check for check in checks if check not in of_all]
    parts = ((f" --limit {node}", of_node), ("", of_all))
    return tuple(
        f"gpufleet doctor INVENTORY{limit} --check {','.join(found)}"
        for limit, found in parts
        if found
    )


def field_expr(catalog: AlertCatalog, field: str) -> str:
    """A field under labels that stay the same over versions and restarts of the exporter."""
    return _call(f"max by ({', '.join(catalog.labels)})", [label_node(catalog, field)])


def label_node(catalog: AlertCatalog, selector: str) -> str:
    """A selector's newest values with the label `node`, from the first label that has it."""
    expr = f"last_over_time({selector}[{catalog.window}])"
    return _first_of(expr, "node", catalog.node_labels)


def label_workload(catalog: AlertCatalog, selector: str) -> str:
    """`label_node`, with the `namespace` and `pod` of the workload, if any.

    The exporter's own pod does not count as a workload. It is the pod of `up` for the same target,
    or, if that series is gone, it has a usual name.
    """
    expr = label_node(catalog, selector)
    for label, places in catalog.workload_labels.items():
        expr = _first_of(expr, label, places)
    expr = _call("label_replace", [expr, f'"pod", "", "pod", "{catalog.exporter_pods}"'])
    own = f"last_over_time(up[{catalog.window}])"
    return f"{expr}\nunless on (pod) vector(0)\nunless on (job, instance, namespace, pod) {own}"


def _first_of(expr: str, label: str, places: tuple[str, ...]) -> str:
    """`expr` with `label` set to the first of the labels `places` that is not empty."""
    sources = ", ".join(f'"{place}"' for place in places)
    joined = _call("label_join", [expr, f'"{label}", ";", {sources}'])
    return _call("label_replace", [joined, f'"{label}", "$1", "{label}", ";*([^;]*).*"'])


def _call(function: str, arguments: list[str]) -> str:
    inner = ",\n".join(textwrap.indent(argument, "  ") for argument in arguments)
    return f"{function}(\n{inner}\n)"


def expand_macros(catalog: AlertCatalog, text: str) -> str:
    """`text` with its [[macros]] filled in. Raises KeyError for an unknown one."""

    def fill(found: re.Match[str]) -> str:
        name, argument = found.group(1), found.group(2) or ""
        if name == "node":
            return label_node(catalog, argument)
        if name == "owned":
            return label_workload(catalog, argument)
        if name == "xids":
            return "|".join(str(c) for n in argument.split() for c in load_xids().codes(n))
        return {
            "exporters": catalog.exporter_pods,
            "labels": ", ".join(catalog.labels),
            "gpu": _GPU,
            "pods": _PODS.replace("PREFIX", catalog.prefix),
        }[name]

    return _MACRO.sub(fill, text).strip()


def prometheus_rule(
    groups: list[dict[str, Any]], namespace: str, labels: Mapping[str, str], name: str = RULE_NAME
) -> dict[str, Any]:
    """The rules as an object for the operator. `labels`: by which a Prometheus takes it."""
    own = {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "gpufleet"}
    return {
        "apiVersion": API_VERSION,
        "kind": "PrometheusRule",
        "metadata": {"name": name, "namespace": namespace, "labels": {**own, **labels}},
        "spec": {"groups": groups},
    }


def rules_file(content: Mapping[str, Any], title: str) -> str:
    """The text of a rules file or of a manifest, with `title` as its first comment."""
    return f"# {title}\n{yaml_text(content)}"
