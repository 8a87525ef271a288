"""Alerts about GPUs. Types of alerts.yaml and xids.yaml, which explain their fields."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from gpufleet.core.data import read_data
from gpufleet.core.entries import Entry

Duration = Annotated[str, StringConstraints(pattern=r"^\d+[smhd]$")]
Severity = Literal["critical", "warning", "info"]
_FIELD = re.compile(r"\bDCGM_[A-Z0-9_]+")


class XidClass(Entry):
    """Codes that require the same action, each with its meaning."""

    name: str
    title: str
    codes: dict[int, str]


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
    """alerts.yaml and xids.yaml. `prefix`: of recorded series; `labels`: that they all have."""

    as_of: date
    prefix: str
    window: Duration
    labels: tuple[str, ...]
    node_labels: tuple[str, ...]
    workload_labels: dict[str, tuple[str, ...]]
    exporter_pods: str
    readers: dict[str, str]  # image name -> the first version that reads the rules
    alternatives: tuple[tuple[str, ...], ...]
    xids: tuple[XidClass, ...]
    records: tuple[RecordingRule, ...]
    without_alert: dict[str, str]  # check of the doctor on hardware -> why it has no alert
    alerts: tuple[Alert, ...]

    @model_validator(mode="after")
    def _check(self) -> AlertCatalog:
        names: list[object] = [alert.name for alert in self.alerts]
        codes: list[object] = [code for entry in self.xids for code in entry.codes]
        for what in (names, codes):
            twice = {str(name) for name in what if what.count(name) > 1}
            if twice:
                raise ValueError(f"named twice: {', '.join(sorted(twice))}")
        return self

    def codes(self, name: str) -> tuple[int, ...]:
        """The codes of a class of XIDs. Raises KeyError for an unknown class."""
        return tuple({entry.name: entry.codes for entry in self.xids}[name])

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


@lru_cache(maxsize=1)
def load_alerts() -> AlertCatalog:
    """The alerts that this version of gpufleet ships."""
    return AlertCatalog.model_validate(
        {**read_data("monitoring/alerts"), "xids": read_data("monitoring/xids")["classes"]}
    )
