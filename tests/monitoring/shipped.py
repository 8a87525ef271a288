"""The dashboards as they are committed, and their queries as Grafana would send them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from dashboards import ALL, FOLDER
from dashboards.model import Dashboard, Panel, Query
from tests.monitoring.fleet import CLUSTER
from tests.monitoring.fleet_rows import Choice

PANELS = [(dashboard, panel) for dashboard in ALL for row in dashboard.rows for panel in row.panels]
CHOICES = {
    "all": Choice(),
    "hostname": Choice(frozenset({"gpu-4"}), frozenset({"0"}), frozenset({"research"})),
    "Hostname": Choice(frozenset({"gpu-6"}), frozenset({"1", "2"}), frozenset({"batch"})),
    "honoured": Choice(frozenset({"gpu-7", "gpu-5"}), frozenset({"0"}), frozenset({"batch"})),
    "labelled": Choice(frozenset({"gpu-8"}), frozenset({"7"}), frozenset({"inference"})),
}
CASES = [  # dashboard, panel, name of the choice
    pytest.param(dashboard, panel, choice, id=f"{dashboard.name}: {panel.title}, {choice}")
    for dashboard, panel in PANELS
    for choice in CHOICES
    if choice == "all" or CHOICES[choice].only(dashboard.variables) != Choice()
]
GRAFANA = {"__rate_interval": "4m", "__range": "1h", "__range_s": "3600", "__interval": "1m"}


def filled_in(text: str, choice: Choice, cluster: str = CLUSTER) -> str:
    """A query with its variables filled in as Grafana does. An unknown variable is an error.

    `$1` of label_replace is not a variable.
    """
    values = {name: choice.text(name) for name in ("node", "gpu", "namespace")}
    values |= {"cluster": cluster, **GRAFANA}
    return re.sub(r"\$([a-z_]\w*)", lambda found: values[found[1]], text)


def shipped(dashboard: Dashboard, panel: Panel) -> Iterator[tuple[str, Query]]:
    """The expressions of a panel in the committed JSON, each with its description."""
    committed = json.loads((FOLDER / f"{dashboard.name}.json").read_text())
    [found] = [part for part in committed["panels"] if part["title"] == panel.title]
    assert len(found["targets"]) == len(panel.queries)
    for target, query in zip(found["targets"], panel.queries, strict=True):
        yield target["expr"], query
