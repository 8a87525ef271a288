"""`gpufleet catalog autoscaling`: metrics of GPUs for autoscalers, and manifests that use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import yaml
from rich import box
from rich.console import Console
from rich.table import Table

from gpufleet.helm.chart_choice import kubernetes_minor
from gpufleet.monitoring.autoscalers import (
    CALM_SECONDS,
    Scaling,
    hpa,
    hpa_of,
    quantity,
    scaled_object,
)
from gpufleet.monitoring.autoscaling_models import load_autoscaling
from gpufleet.monitoring.autoscaling_rules import custom_rules, external_rules

_OPTIONS = (
    click.option("--deployment", required=True, help="What is scaled."),
    click.option("--namespace", default="default", show_default=True),
    click.option("--metric", default="duty_cycle_current", show_default=True),
    click.option("--value", help="Mean over the pods: 60, 60Gi. Default: an example per metric."),
    click.option("--least", type=click.IntRange(1), default=1, show_default=True, help="Pods."),
    click.option("--most", type=click.IntRange(1), default=6, show_default=True, help="Pods."),
    click.option("--calm", type=click.IntRange(0), default=CALM_SECONDS, show_default=True,
                 help="Seconds of calm before pods go."),
)  # fmt: skip


def _wanted(command: Callable[..., None]) -> Callable[..., None]:
    """The options that every manifest has."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _scaling(options: dict[str, Any]) -> Scaling:
    catalog = load_autoscaling()
    metric = catalog.metric(options["metric"])
    if metric is None:
        known = ", ".join(entry.name for entry in catalog.metrics)
        raise click.UsageError(f"no metric {options['metric']}; there are {known}")
    value = options["value"] or metric.target
    try:
        quantity(value)
    except ValueError:
        raise click.UsageError(f"--value {value} is no number such as 60 or 60Gi") from None
    return Scaling(
        namespace=options["namespace"],
        deployment=options["deployment"],
        metric=metric,
        value=value,
        most=options["most"],
        least=options["least"],
        calm_seconds=options["calm"],
    )


@click.group()
def autoscaling() -> None:
    """Metrics of GPUs for autoscalers, and manifests that use them."""


@autoscaling.command()
def metrics() -> None:
    """The metrics that pods with GPUs have."""
    table = Table("metric", "what it is", "of", box=box.SIMPLE)
    for metric in load_autoscaling().metrics:
        table.add_row(metric.name, metric.title, metric.fields[0].field)
    console = Console(highlight=False)
    console.width = max(console.width, 120)
    console.print(table)


@autoscaling.command()
def rules() -> None:
    """The rules as prometheus-adapter's config.yaml, for an adapter of your own."""
    catalog = load_autoscaling()
    config = {"rules": custom_rules(catalog), "externalRules": external_rules(catalog)}
    click.echo(yaml.safe_dump(config, sort_keys=False, width=1000), nl=False)


@autoscaling.command("hpa")
@click.option("--kubernetes", required=True, help="Minor or full version: 1.24, v1.24.17-eks-1.")
@_wanted
def hpa_(kubernetes: str, **options: Any) -> None:
    """A HorizontalPodAutoscaler in the version that the cluster has."""
    catalog = load_autoscaling()
    try:
        minor = kubernetes_minor(kubernetes)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    api = hpa_of(catalog, minor)
    if not api:
        raise click.UsageError(f"Kubernetes {minor} has no autoscaler for such metrics")
    click.echo(hpa(catalog, _scaling(options), api, minor), nl=False)


@autoscaling.command("scaled-object")
@click.option("--prometheus", required=True, metavar="URL", help="As KEDA's pods reach it.")
@_wanted
def scaled_object_(prometheus: str, **options: Any) -> None:
    """The same as a ScaledObject of KEDA."""
    click.echo(scaled_object(load_autoscaling(), _scaling(options), prometheus), nl=False)
