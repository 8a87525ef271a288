"""The chart versions for a cluster, as JSON and as text."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from rich.text import Text

from gpufleet.catalog.view import print_rows
from gpufleet.core.console import print_finding, result_console
from gpufleet.core.findings import Finding
from gpufleet.helm.chart_choice import ChartChoice


def charts_data(
    kubernetes: str, chosen: dict[str, ChartChoice], about: list[Finding]
) -> dict[str, Any]:
    """`{"kubernetes": …, "findings": […], "charts": {name: …}}`."""
    entries = {name: asdict(choice) for name, choice in chosen.items()}
    for name, entry in entries.items():
        del entry["chart"]
        entry["findings"] = [finding.as_dict() for finding in chosen[name].findings]
    return {
        "kubernetes": kubernetes,
        "findings": [finding.as_dict() for finding in about],
        "charts": entries,
    }


def print_charts(kubernetes: str, chosen: dict[str, ChartChoice], about: list[Finding]) -> None:
    """Print the choice for each chart, with findings."""
    console = result_console()
    console.print(Text(f"Charts for Kubernetes {kubernetes}", style="bold"))
    for finding in about:
        print_finding(console, finding)
    for name, choice in chosen.items():
        console.print(Text(f"{name} {choice.version}", style="bold"))
        values = json.dumps(choice.values) if choice.values else ""
        print_rows(console, {"reason": choice.reason, "checked": choice.checked, "values": values})
        for finding in choice.findings:
            print_finding(console, finding)
