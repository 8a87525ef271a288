"""`gpufleet catalog charts`: the chart versions for a cluster, and why."""

from __future__ import annotations

import json
import sys
from datetime import date
from typing import Literal

import click

from gpufleet.catalog.chart_view import charts_data, print_charts
from gpufleet.core.exit_status import ExitStatus
from gpufleet.helm.chart_choice import choose_charts, cluster_findings, load_charts


@click.command()
@click.option(
    "--kubernetes", required=True, help="Kubernetes version, minor or full: 1.24, v1.24.17-eks-1."
)
@click.option("--chart", "wanted", multiple=True, help="Only this chart; repeatable.")
@click.option(
    "--policy", type=click.Choice(["careful", "newest"]), default="careful", show_default=True,
    help="careful: documented and tested for this minor, if any is; newest: that it accepts.",
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
        click.echo(json.dumps(charts_data(kubernetes, shown, about), indent=2))
    else:
        print_charts(kubernetes, shown, about)
    stopped = any(finding.blocks for choice in shown.values() for finding in choice.findings)
    sys.exit(ExitStatus.FAILED if stopped else ExitStatus.CONVERGED)


def _pinned(pins: tuple[str, ...]) -> dict[str, str]:
    split = [pin.partition("=") for pin in pins]
    for name, sign, version in split:
        if not (name and sign and version):
            raise click.UsageError(f"--pin {name}{sign}{version} is not CHART=VERSION")
    return {name: version for name, _, version in split}
