"""`gpufleet catalog charts`: the chart versions for a cluster, and why."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import date
from typing import Any, Literal

import click
from rich.text import Text

from gpufleet.catalog.view import print_rows
from gpufleet.core.console import print_finding, result_console
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding
from gpufleet.helm.chart_choice import ChartChoice, choose_charts, cluster_findings, load_charts


@click.command()
@click.option(
    "--kubernetes", required=True, help="Kubernetes version, minor or full: 1.24, v1.24.17-eks-1."
)
@click.option("--chart", "wanted", multiple=True, help="Only this chart; repeatable.")
@click.option(
    "--policy", type=click.Choice(["careful", "newest"]), default="careful", show_default=True,
    help="careful: documented and tested for this Kubernetes; newest: that its API accepts.",
)  # fmt: skip
@click.option(
    "--pin", "pins", multiple=True, metavar="CHART=VERSION", help="Pin a chart; repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def charts(
    kubernetes: str,
    wanted: tuple[str, ...],
    policy: Literal["careful", "newest"],
    pins: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show the chart versions for a cluster. Exit status 1 if a pin cannot work."""
    catalog, pinned = load_charts(), _pinned(pins)
    unknown = [name for name in (*wanted, *pinned) if name not in catalog.charts]
    if unknown:
        raise click.UsageError(
            f"unknown chart {', '.join(unknown)}; available: {', '.join(catalog.charts)}"
        )
    try:
        chosen = choose_charts(catalog, kubernetes, policy, pinned)
        about = cluster_findings(catalog, kubernetes, date.today())
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    shown = {name: choice for name, choice in chosen.items() if not wanted or name in wanted}
    if as_json:
        click.echo(json.dumps(_data(kubernetes, shown, about), indent=2))
    else:
        _show(kubernetes, shown, about)
    stopped = any(finding.blocks for choice in shown.values() for finding in choice.findings)
    sys.exit(ExitStatus.FAILED if stopped else ExitStatus.CONVERGED)


def _pinned(pins: tuple[str, ...]) -> dict[str, str]:
    split = [pin.partition("=") for pin in pins]
    for name, sign, version in split:
        if not (name and sign and version):
            raise click.UsageError(f"--pin {name}{sign}{version} is not CHART=VERSION")
    return {name: version for name, _, version in split}


def _data(kubernetes: str, chosen: dict[str, ChartChoice], about: list[Finding]) -> dict[str, Any]:
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


def _show(kubernetes: str, chosen: dict[str, ChartChoice], about: list[Finding]) -> None:
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
