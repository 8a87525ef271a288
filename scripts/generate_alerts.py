"""Writes what is made of the catalog's alerts: files of rules, a table in docs/, and the doctor's
commands in docs/runbooks.

`--check` writes nothing and exits 1 when a file is not what would be written.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpufleet.exporter.counters import CounterCatalog, load_counters
from gpufleet.monitoring.alert_models import Alert, AlertCatalog, load_alerts
from gpufleet.monitoring.alert_rules import (
    doctor_commands,
    expand_macros,
    missing_fields,
    prometheus_rule,
    rule_groups,
    rules_file,
)
from gpufleet.monitoring.settings import MonitoringSettings

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "templates/monitoring/alerts"
PAGE = ROOT / "docs/reference/alerts.md"
RUNBOOKS = ROOT / "docs/runbooks"
LOOK, DOCTOR_LINE = "## What to look at\n\n", "- `gpufleet doctor INVENTORY"
BEGIN, END = "<!-- alerts: begin (make alerts) -->", "<!-- alerts: end -->"
MADE = "Made by `make alerts` of gpufleet/monitoring/data/alerts.yaml"
# Other programs than the exporter whose series an alert uses, by the prefix of their names.
OTHERS = {"kube_": "kube-state-metrics"}


def needs(catalog: AlertCatalog, counters: CounterCatalog, alert: Alert) -> str:
    """The requirements of an alert in addition to an exporter with its default counters."""
    expr = expand_macros(catalog, alert.expr)
    found = [title for prefix, title in OTHERS.items() if prefix in expr]
    if missing_fields(catalog, alert, counters.builtin.fields):
        found.append("our list of counters")
    return ", ".join(found) or "-"


def checks(alert: Alert) -> str:
    """The checks of the doctor that confirm an alert."""
    return ", ".join(f"`{check}`" for check in alert.doctor) or "-"


def threshold(alert: Alert) -> str:
    """Why the threshold is what it is, with a link to the page that it is from."""
    page = alert.source.split(" (")[0]
    return f"{alert.reason} ([page]({page}))" if page else alert.reason


def table(catalog: AlertCatalog, counters: CounterCatalog) -> str:
    """The alerts by topic, each with its runbook and the source of its threshold."""
    lines: list[str] = []
    for topic in dict.fromkeys(alert.topic for alert in catalog.alerts):
        lines += [
            "",
            f"**{topic}**",
            "",
            "| alert | severity | after | needs | doctor | threshold |",
        ]
        lines += ["|---|---|---|---|---|---|"]
        lines += [
            f"| [{alert.name}](../runbooks/{alert.name}.md) | {alert.severity} | "
            f"{'at once' if alert.for_ == '0m' else alert.for_} | "
            f"{needs(catalog, counters, alert)} | {checks(alert)} | {threshold(alert)} |"
            for alert in catalog.alerts
            if alert.topic == topic
        ]
    return "\n".join(lines)


def runbook(alert: Alert, text: str) -> str:
    """A runbook with the doctor's commands at the top of what to look at."""
    kept = "".join(line for line in text.splitlines(True) if not line.startswith(DOCTOR_LINE))
    lines = [f"- `{command}`\n" for command in doctor_commands(alert.doctor)]
    before, after = kept.split(LOOK)
    return f"{before}{LOOK}{''.join(lines)}{after}"


def pages() -> dict[Path, str]:
    """Every generated file and its content."""
    catalog, counters = load_alerts(), load_counters()
    groups = rule_groups(catalog)
    rule = prometheus_rule(groups, MonitoringSettings().namespace, {})
    books = {RUNBOOKS / f"{alert.name}.md": alert for alert in catalog.alerts}
    before, rest = PAGE.read_text().split(BEGIN)
    _, after = rest.split(END)
    return {
        FOLDER / "rules.yaml": rules_file({"groups": groups}, f"{MADE}: for rule_files."),
        FOLDER / "prometheus-rule.yaml": rules_file(rule, f"{MADE}: for kubectl apply."),
        **{path: runbook(alert, path.read_text()) for path, alert in books.items()},
        PAGE: f"{before}{BEGIN}\n{table(catalog, counters)}\n{END}{after}",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = {
        path: text
        for path, text in pages().items()
        if not path.exists() or path.read_text() != text
    }
    for path, text in stale.items():
        print(f"{'stale' if check else 'written'}: {path.relative_to(ROOT)}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main())
