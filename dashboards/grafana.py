"""Our panels in Grafana's terms, with its foundation SDK."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from grafana_foundation_sdk.builders import bargauge, common, stat, table, timeseries
from grafana_foundation_sdk.builders.dashboard import Dashboard as DashboardBuilder
from grafana_foundation_sdk.builders.dashboard import DashboardLink, ThresholdsConfig
from grafana_foundation_sdk.builders.dashboard import Row as RowBuilder
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    BigValueGraphMode,
    GraphGradientMode,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataTransformerConfig,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards import variables
from dashboards.model import Dashboard, Panel, Query

TAG = "gpufleet"
RULES = Path(__file__).resolve().parents[1] / "templates/monitoring/alerts/rules.yaml"
HEIGHTS = {"stat": 4, "series": 8, "stacked": 8, "table": 8, "bars": 8}


def build(dashboard: Dashboard) -> dict[str, Any]:
    """The dashboard as Grafana's JSON."""
    builder = (
        DashboardBuilder(dashboard.title)
        .uid(f"{TAG}-{dashboard.name}")
        .description(dashboard.about)
        .tags([TAG])
        .readonly()
        .refresh("1m")
        .time("now-3h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .link(_links())
        .with_variable(variables.datasource())
    )
    for variable in variables.choices(dashboard.variables):
        builder = builder.with_variable(variable)
    for row in dashboard.rows:
        builder = builder.with_row(RowBuilder(row.title))
        for panel in row.panels:
            builder = builder.with_panel(_panel(panel))
    found: dict[str, Any] = json.loads(JSONEncoder().encode(builder.build()))
    for number, part in enumerate(found["panels"], start=1):
        part["id"] = number  # Grafana opens and links panels by it
    return found


def text(dashboard: Dashboard) -> str:
    """The dashboard as it is committed and deployed."""
    return json.dumps(build(dashboard), indent=1, sort_keys=True) + "\n"


def _links() -> DashboardLink:
    return (
        DashboardLink("GPU dashboards")
        .type(DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(True)
        .include_vars(True)
        .keep_time(True)
    )


def _panel(panel: Panel) -> Any:
    """A panel in Grafana's JSON: the parts of all panels, then the parts of its kind."""
    builder = (
        BUILDERS[panel.kind]()
        .title(panel.title)
        .description(_description(panel))
        .datasource(variables.SOURCE)
        .unit(panel.unit)
        .span(panel.width)
        .height(HEIGHTS[panel.kind])
        .thresholds(_thresholds(panel))
    )
    for place, query in enumerate(panel.queries):
        builder = builder.with_target(_target(panel, query, chr(ord("A") + place)))
    return builder


def _description(panel: Panel) -> str:
    """What the panel shows, and its alerts, each with the doctor's commands for it."""
    commands = _doctor_commands()
    return "\n\n".join((panel.about, *(f"{name}: `{commands[name]}`" for name in panel.alerts)))


@cache
def _doctor_commands() -> dict[str, str]:
    """Alert -> the doctor's commands, from the generated rules."""
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return {
        rule["alert"]: rule["annotations"]["doctor"].replace("{{ $labels.node }}", "NODE")
        for rule in group["rules"]
        if "doctor" in rule.get("annotations", {})
    }


def _target(panel: Panel, query: Query, letter: str) -> Dataquery:
    target = Dataquery().ref_id(letter).expr(query.expression).datasource(variables.SOURCE)
    if query.legend:
        target = target.legend_format(query.legend)
    if panel.kind == "table":
        return target.instant().format(PromQueryFormat.TABLE)
    return target.instant() if panel.kind == "bars" else target.range()


def _thresholds(panel: Panel) -> ThresholdsConfig:
    steps = [Threshold(color="green")]
    if panel.steps:
        yellow, red = panel.steps
        steps += [Threshold(yellow, "yellow"), Threshold(red, "red")]
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def _stat() -> stat.Panel:
    last = common.ReduceDataOptions().calcs(["lastNotNull"])
    return stat.Panel().reduce_options(last).graph_mode(BigValueGraphMode.AREA)


def _series() -> timeseries.Panel:
    legend = (
        common.VizLegendOptions()
        .display_mode(LegendDisplayMode.TABLE)
        .placement(LegendPlacement.RIGHT)
        .calcs(["lastNotNull", "max"])
        .show_legend(True)
    )
    tooltip = common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING)
    return timeseries.Panel().legend(legend).tooltip(tooltip).fill_opacity(5).axis_soft_min(0)


def _stacked() -> timeseries.Panel:
    stack = common.StackingConfig().mode(StackingMode.NORMAL).group("A")
    return _series().stacking(stack).fill_opacity(40).gradient_mode(GraphGradientMode.OPACITY)


def _table() -> table.Panel:
    """Rows of labels and a value; the time and the cluster's name are left out of sight."""
    hidden = {"excludeByName": {"Time": True, "__name__": True}}
    return (
        table.Panel()
        .with_transformation(DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(DataTransformerConfig(id_val="organize", options=hidden))
    )


def _bars() -> bargauge.Panel:
    last = common.ReduceDataOptions().calcs(["lastNotNull"])
    return bargauge.Panel().reduce_options(last).orientation(VizOrientation.HORIZONTAL)


BUILDERS: dict[str, Callable[[], Any]] = {
    "stat": _stat,
    "series": _series,
    "stacked": _stacked,
    "table": _table,
    "bars": _bars,
}
