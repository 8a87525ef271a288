"""Pictures of dashboards for the documentation, drawn by matplotlib: not by Grafana."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

Series = list[dict[str, Any]]
COLUMN, LINE = 0.58, 0.34  # inches of a column and of a line of Grafana's grid
DOTS = 80  # per inch
COLOURS = 160  # of the palette: keeps a picture below 100 kB
NOTE = "Drawn with matplotlib from generated data: 8 nodes of 8 GPUs. Grafana's own look differs."
MANY = 9  # lines of a legend
STEPS = {"percentunit": (100, "%"), "watt": (0.001, "kW"), "Bps": (1e-9, "GB/s"),
         "hertz": (1e-6, "MHz"), "mbytes": (1 / 1024, "GiB"), "celsius": (1, "°C"),
         "kwatth": (1, "kWh"), "percent": (1, "%")}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Data:
    """The source of the numbers. `over_time(expression)` and `now(expression)` return series in the
    format of Prometheus' API."""

    over_time: Callable[[str], Series]
    now: Callable[[str], Series]


def draw(dashboard: dict[str, Any], data: Data) -> bytes:
    """A PNG with every panel of a dashboard's JSON in its place."""
    lines = max(part["gridPos"]["y"] + part["gridPos"]["h"] for part in dashboard["panels"]) + 2
    with mpl.rc_context({"font.size": 7.5, "axes.titlesize": 8.5, "lines.linewidth": 1}):
        figure = Figure(figsize=(24 * COLUMN, lines * LINE), dpi=DOTS)
        figure.text(0.01, 1 - 0.6 / lines, dashboard["title"], size=13, weight="bold")
        figure.text(0.99, 1 - 0.6 / lines, NOTE, ha="right", style="italic", color="#555555")
        for part in dashboard["panels"]:
            place = part["gridPos"]
            top = 1 - (place["y"] + 1.2) / lines
            if part["type"] == "row":
                figure.text(0.01, top - 0.7 / lines, part["title"], size=10, weight="bold")
                continue
            left, width = (place["x"] + 1.1) / 24, (place["w"] - 1.3) / 24
            height = (place["h"] - 2.1) / lines
            axes = figure.add_axes((left, top - 1.2 / lines - height, width, height))
            axes.set_title(part["title"], loc="left")
            PANELS[part["type"]](axes, part, data)
        return _png(figure)


def _png(figure: Figure) -> bytes:
    raw, small = io.BytesIO(), io.BytesIO()
    figure.savefig(raw, format="png")
    image = Image.open(raw).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(small, format="png", optimize=True)
    return small.getvalue()


def _shown(value: float, unit: str) -> str:
    factor, word = STEPS.get(unit, (1, ""))
    return f"{value * factor:.4g} {word}".strip()


def _named(target: dict[str, Any], labels: dict[str, str]) -> str:
    """The legend of a series."""
    pattern = target.get("legendFormat") or ""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), pattern)


def _stat(axes: Axes, part: dict[str, Any], data: Data) -> None:
    axes.axis("off")
    [target] = part["targets"]
    unit = part["fieldConfig"]["defaults"]["unit"]
    for one in data.now(target["expr"]):
        text = _shown(float(one["value"][1]), unit)
        axes.text(0.5, 0.45, text, size=17, ha="center", va="center", color="#1a7f37")


def _series(axes: Axes, part: dict[str, Any], data: Data) -> None:
    defaults = part["fieldConfig"]["defaults"]
    factor, word = STEPS.get(defaults["unit"], (1, ""))
    stacked = "stacking" in defaults["custom"]
    lines = []
    for target in part["targets"]:
        for one in data.over_time(target["expr"]):
            points = {int(at): float(value) * factor for at, value in one["values"]}
            lines.append((_named(target, one["metric"]), points))
    _plot(axes, lines, stacked)
    axes.set_ylabel(word)
    highest = max((value for _, points in lines for value in points.values()), default=0)
    axes.set_ylim(0, None if stacked else 1.08 * highest or 1)
    axes.grid(alpha=0.3)
    if 0 < len(lines) <= MANY:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1.05), fontsize=6, frameon=False)
        box = axes.get_position()
        axes.set_position((box.x0, box.y0, box.width * 0.8, box.height))


def _plot(axes: Axes, lines: list[tuple[str, dict[int, float]]], stacked: bool) -> None:
    """Lines, or areas on one another, over minutes before the end."""
    times = sorted({at for _, points in lines for at in points})
    minutes = [(at - times[-1]) / 60 for at in times]
    axes.set_xlabel("minutes")
    if stacked:
        rows = [[points.get(at, 0.0) for at in times] for _, points in lines]
        axes.stackplot(minutes, rows, labels=[name for name, _ in lines], alpha=0.7)
        return
    for name, points in lines:
        axes.plot(minutes, [points.get(at, float("nan")) for at in times], label=name)


def _table(axes: Axes, part: dict[str, Any], data: Data) -> None:
    axes.axis("off")
    [target] = part["targets"]
    found = data.now(target["expr"])
    if not found:
        return
    heads = [name for name in found[0]["metric"] if name not in ("cluster", "UUID")]
    unit = part["fieldConfig"]["defaults"]["unit"]
    rows = [
        [*(one["metric"][name] for name in heads), _shown(float(one["value"][1]), unit)]
        for one in found[:10]
    ]
    table = axes.table(
        rows, colLabels=[*heads, "value"], loc="upper left", edges="horizontal", cellLoc="left"
    )
    table.auto_set_font_size(False)
    table.set_fontsize(6.5)
    table.auto_set_column_width(list(range(len(heads) + 1)))


def _bars(axes: Axes, part: dict[str, Any], data: Data) -> None:
    unit = part["fieldConfig"]["defaults"]["unit"]
    bars = []
    for target in part["targets"]:
        for one in data.now(target["expr"]):
            bars.append((_named(target, one["metric"]), float(one["value"][1])))
    bars.sort(reverse=True)
    drawn = axes.barh([name for name, _ in bars], [value for _, value in bars], color="#4c78a8")
    axes.bar_label(drawn, [_shown(value, unit) for _, value in bars], padding=2, size=6.5)
    axes.spines[["top", "right"]].set_visible(False)
    box = axes.get_position()
    axes.set_position((box.x0 + 0.2 * box.width, box.y0, 0.75 * box.width, box.height))


PANELS: dict[str, Callable[[Axes, dict[str, Any], Data], None]] = {
    "stat": _stat,
    "timeseries": _series,
    "table": _table,
    "bargauge": _bars,
}
