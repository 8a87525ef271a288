"""The release of Node Problem Detector, with checks of GPUs. Pure.

The form of the monitor's file:
https://github.com/kubernetes/node-problem-detector/blob/master/docs/custom_plugin_monitor.md
"""

from __future__ import annotations

import json
from datetime import date
from typing import Any

from gpufleet.core.entries import Entry, Sourced, entry_loader
from gpufleet.core.render import TEMPLATES_FOLDER
from gpufleet.helm.builder import DETECTOR, ReleaseBuilder, chart_values
from gpufleet.helm.chart_models import Signs
from gpufleet.helm.release import Release
from gpufleet.monitoring import findings
from gpufleet.monitoring.monitors import MonitorPlan
from gpufleet.monitoring.settings import MonitoringSettings
from gpufleet.monitoring.xids import load_xids

SCRIPTS = TEMPLATES_FOLDER / "monitoring" / "node-problems"


class Fine(Entry):
    """Reason and message of a condition of a healthy node."""

    reason: str
    message: str


class Check(Entry):
    """A script and its arguments. `xids`: a class of xids.yaml, or "except" for no class."""

    reason: str
    script: str
    arguments: tuple[str, ...] = ()
    xids: str | None = None


class NodeCondition(Check, Sourced):
    """A condition of the node. `held`: its script gets the seconds that a log line counts."""

    type: str
    held: bool = False
    fine: Fine


class NodeProblems(Sourced):
    """node_problems.yaml; `interval`, `timeout` and `hold` are seconds."""

    as_of: date
    folder: str
    shell: str
    monitor: str
    interval: int
    timeout: int
    output: int
    host: str
    hold: int
    conditions: tuple[NodeCondition, ...]
    events: tuple[Check, ...]
    signs: Signs


load_node_problems = entry_loader(NodeProblems, "monitoring/node_problems")


def plan_detector(
    build: ReleaseBuilder, wanted: MonitoringSettings, monitors: MonitorPlan
) -> Release | None:
    """Node Problem Detector, if it is enabled and no other one exists."""
    if not (wanted.enabled and wanted.node_problems):
        return None
    catalog = load_node_problems()
    others = build.others(catalog.signs.fits, chart=DETECTOR)
    if others:
        build.findings.append(findings.DETECTOR_THERE(found=others[0]))
        return None
    values = chart_values(
        "monitoring/node-problem-detector.yaml",
        files=monitor_files(catalog),
        monitor=f"{catalog.folder}/{catalog.monitor}.json",
        host=catalog.host,
        service_monitor=monitors.scrape == "service-monitor",
        monitor_labels=dict(monitors.labels),
        gpu_labels=build.catalog.gpu_labels.all,
    )
    return build.release(
        DETECTOR, wanted.namespace, values, wanted=wanted.node_problems_values, everywhere=DETECTOR
    )


def monitor_files(catalog: NodeProblems) -> dict[str, str]:
    """The files of the monitor, by name: its configuration, and its scripts."""
    files = {path.name: path.read_text() for path in sorted(SCRIPTS.glob("*.sh"))}
    return {f"{catalog.monitor}.json": json.dumps(monitor_config(catalog), indent=1), **files}


def monitor_config(catalog: NodeProblems) -> dict[str, Any]:
    """The configuration of NPD's custom plugin monitor."""
    permanent = [
        {
            "type": "permanent",
            "condition": condition.type,
            **_rule(catalog, condition, catalog.hold if condition.held else None),
        }
        for condition in catalog.conditions
    ]
    temporary = [
        {"type": "temporary", **_rule(catalog, event, catalog.interval)} for event in catalog.events
    ]
    return {
        "plugin": "custom",
        "pluginConfig": {
            "invoke_interval": f"{catalog.interval}s",
            "timeout": f"{catalog.timeout}s",
            "max_output_length": catalog.output,
            "concurrency": 1,
            "enable_message_change_based_condition_update": True,
        },
        "source": catalog.monitor,
        "metricsReporting": True,
        "conditions": [
            {"type": condition.type, **condition.fine.model_dump()}
            for condition in catalog.conditions
        ],
        "rules": permanent + temporary,
    }


def _rule(catalog: NodeProblems, check: Check, seconds: int | None) -> dict[str, Any]:
    """How NPD calls a check, with arguments that select XIDs. `seconds`: how far back it reads the
    log, if it does."""
    back = [] if seconds is None else [str(seconds)]
    xids: list[str] = []
    if check.xids == "except":
        known = sorted(code for entry in load_xids().classes for code in entry.codes)
        xids = ["except", *map(str, known)]
    elif check.xids is not None:
        xids = ["only", *map(str, load_xids().codes(check.xids))]
    return {
        "reason": check.reason,
        "path": catalog.shell,
        "args": [f"{catalog.folder}/{check.script}", *back, *xids, *check.arguments],
    }
