"""Alerts about GPUs. Types of alerts.yaml, which explains its fields."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from gpufleet.core.entries import Entry, entry_loader

Duration = Annotated[str, StringConstraints(pattern=r"^\d+[smhd]$")]
Severity = Literal["critical", "warning", "info"]
_FIELD = re.compile(r"\bDCGM_[A-Z0-9_]+")


class RecordingRule(Entry):
    """A series that alerts are written with; `name` without the prefix."""

    name: str
    expr: str
    about: str


class Alert(Entry):
    """One rule. `reason`: why it has this threshold; `source`: the page that it is from;
    `per_instance`: a MIG instance has a value of its own, and an alert of its own."""

    name: Annotated[str, StringConstraints(pattern=r"^Gpu[A-Za-z]+$")]
    topic: str
    expr: str
    for_: Duration = Field("0m", alias="for")
    severity: Severity
    summary: str
    description: str
    reason: str
    source: str = ""
    optional: tuple[str, ...] = ()  # fields without which the alert works as well
    upgrade: Literal["", "ignore"] = ""
    per_instance: bool = False
    doctor: tuple[str, ...] = ()  # checks of the doctor that confirm it

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the rule. Upgrades ask Prometheus for alerts without `upgrade: ignore`."""
        own = {"upgrade": self.upgrade} if self.upgrade else {}
        return {"severity": self.severity, "component": "gpu", **own}


class AlertCatalog(Entry):
    """alerts.yaml. `prefix`: of recorded series; `labels`: that they all have."""

    as_of: date
    prefix: str
    window: Duration
    labels: tuple[str, ...]
    node_labels: tuple[str, ...]
    workload_labels: dict[str, tuple[str, ...]]
    exporter_pods: str
    readers: dict[str, str]  # image name -> the first version that reads the rules
    alternatives: tuple[tuple[str, ...], ...]
    records: tuple[RecordingRule, ...]
    without_alert: dict[str, str]  # check of the doctor on hardware -> why it has no alert
    alerts: tuple[Alert, ...]

    @model_validator(mode="after")
    def _check(self) -> AlertCatalog:
        names = [alert.name for alert in self.alerts]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"named twice: {', '.join(sorted(twice))}")
        return self

    def alert(self, name: str) -> Alert:
        """The alert of that name. Raises KeyError for an unknown name."""
        return {alert.name: alert for alert in self.alerts}[name]

    def fields(self, expr: str) -> tuple[str, ...]:
        """The DCGM fields that an expression needs, directly or through recorded series."""
        found = list(_FIELD.findall(expr))
        for record in self.records:
            if re.search(rf"\b{self.prefix}:{record.name}\b", expr):
                found += self.fields(record.expr)
        return tuple(sorted(set(found)))


load_alerts = entry_loader(AlertCatalog, "monitoring/alerts")
