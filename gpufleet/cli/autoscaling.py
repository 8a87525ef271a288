"""`gpufleet catalog autoscaling`: GPU metrics for autoscalers, and manifests that use them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import yaml
from rich import box
from rich.table import Column, Table

from gpufleet.core.console import result_console
from gpufleet.helm.chart_choice import kubernetes_minor
from gpufleet.monitoring.autoscalers import (
    STABILIZATION_SECONDS,
    Scaling,
    hpa_of,
    parse_quantity,
    render_hpa,
    scaled_object,
)
from gpufleet.monitoring.autoscaling_models import load_autoscaling
from gpufleet.monitoring.autoscaling_rules import custom_rules, external_rules

_OPTIONS = (
    click.option("--deployment", required=True, help="Deployment to scale."),
    click.option("--namespace", default="default", show_default=True,
                 help="Namespace of the Deployment."),
    click.option("--metric", default="duty_cycle_current", show_default=True,
                 help="Metric to scale on; `metrics` lists them."),
    click.option("--value", help="Target average over the pods, such as 60 or 60Gi. Default: an "
                 "example per metric."),
    click.option("--min-replicas", type=click.IntRange(1), default=1, show_default=True,
                 help="Lower limit for the number of pods."),
    click.option("--max-replicas", type=click.IntRange(1), default=6, show_default=True,
                 help="Upper limit for the number of pods."),
    click.option("--stabilization-window", "stabilization_seconds", type=click.IntRange(0),
                 metavar="SECONDS", default=STABILIZATION_SECONDS, show_default=True,
                 help="Seconds that the metric must stay low before scaling down."),
)  # fmt: skip


def _wanted(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all manifests share."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _scaling(metric: str, value: str | None, **options: Any) -> Scaling:
    """The scaling that the shared options describe. Raises click.UsageError."""
    catalog = load_autoscaling()
    found = catalog.metric(metric)
    if found is None:
        known = ", ".join(entry.name for entry in catalog.metrics)
        raise click.UsageError(f"unknown metric {metric!r}; available: {known}")
    target = value or found.target
    try:
        parse_quantity(target)
    except ValueError:
        message = f"invalid --value {target!r}; expected a number such as 60 or 60Gi"
        raise click.UsageError(message) from None
    return Scaling(metric=found, value=target, **options)


@click.group()
def autoscaling() -> None:
    """Show GPU metrics for autoscalers, and print manifests."""


@autoscaling.command()
def metrics() -> None:
    """List the metrics of pods with GPUs."""
    name, field = Column("metric", no_wrap=True), Column("field", no_wrap=True)
    table = Table(name, "description", field, box=box.SIMPLE)
    for metric in load_autoscaling().metrics:
        table.add_row(metric.name, metric.title, metric.fields[0].field)
    result_console().print(table)


@autoscaling.command()
def rules() -> None:
    """Print the rules as config.yaml of prometheus-adapter."""
    catalog = load_autoscaling()
    config = {"rules": custom_rules(catalog), "externalRules": external_rules(catalog)}
    click.echo(yaml.safe_dump(config, sort_keys=False, width=1000), nl=False)


@autoscaling.command("hpa")
@click.option(
    "--kubernetes", required=True, help="Kubernetes version, minor or full: 1.24, v1.24.17-eks-1."
)
@_wanted
def hpa_(kubernetes: str, **options: Any) -> None:
    """Print a HorizontalPodAutoscaler for the cluster's version."""
    catalog = load_autoscaling()
    try:
        minor = kubernetes_minor(kubernetes)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    api = hpa_of(catalog, minor)
    if not api:
        raise click.UsageError(
            f"Kubernetes {minor} has no HorizontalPodAutoscaler for such metrics"
        )
    click.echo(render_hpa(catalog, _scaling(**options), api, minor), nl=False)


@autoscaling.command("scaled-object")
@click.option(
    "--prometheus", required=True, metavar="URL", help="Prometheus as KEDA's pods reach it."
)
@_wanted
def scaled_object_(prometheus: str, **options: Any) -> None:
    """Print a ScaledObject for KEDA."""
    click.echo(scaled_object(load_autoscaling(), _scaling(**options), prometheus), nl=False)
