"""The numbers that the panels show, against what the fleet was made with."""

from __future__ import annotations

from typing import Any

import pytest

from dashboards.model import ONE, Dashboard, Panel, Rows
from tests.monitoring.conftest import Prometheus
from tests.monitoring.fleet import CLUSTER, END, OTHER_CLUSTER
from tests.monitoring.fleet_panels import ANSWERS
from tests.monitoring.fleet_rows import Choice
from tests.monitoring.shipped import CASES, CHOICES, PANELS, filled_in, shipped

NEAR = 2e-2  # a rate is extrapolated, and an average over time has the fleet's little life in it


def test_every_panel_has_its_answers() -> None:
    known = {
        (board, title): len(found) for board in ANSWERS for title, found in ANSWERS[board].items()
    }
    asked = {(board.name, panel.title): len(panel.queries) for board, panel in PANELS}
    assert known == asked


@pytest.mark.claim("Every query of every panel returns its series with the right numbers.", level=6)
@pytest.mark.parametrize(("dashboard", "panel", "choice"), CASES)
def test_a_panel_shows_the_right_numbers(
    fleet_server: Prometheus, dashboard: Dashboard, panel: Panel, choice: str
) -> None:
    chosen = CHOICES[choice].only(dashboard.variables)
    answers = ANSWERS[dashboard.name][panel.title]
    for (expression, query), answer in zip(shipped(dashboard, panel), answers, strict=True):
        text, wanted = filled_in(expression, chosen), answer(chosen)
        series = fleet_server.query(text, at=END)
        found = {row_of(query.rows, one): float(one["value"][1]) for one in series}
        assert found == pytest.approx(wanted, rel=NEAR), text
        assert len(found) == len(series)
        assert found or choice != "all", "the fleet has nothing that this panel shows"
        if panel.kind in ("series", "stacked", "stat"):
            times = {"start": str(END - 3600), "end": str(END), "step": "60"}
            over_time = fleet_server.get("query_range", query=text, **times)["result"]
            assert {row_of(query.rows, one) for one in over_time} >= set(wanted)


def row_of(rows: Rows, series: Any) -> tuple[str, ...]:
    """The labels of a row; a series has no others but its cluster."""
    assert set(series["metric"]) - {"cluster"} == set(rows.labels), series["metric"]
    return tuple(series["metric"][label] for label in rows.labels)


def test_clusters_are_kept_apart(fleet_server: Prometheus) -> None:
    """If all clusters are selected, each row appears once per cluster, and numbers are sums."""
    for dashboard, panel in PANELS:
        for expression, query in shipped(dashboard, panel):
            one = fleet_server.query(filled_in(expression, Choice()), at=END)
            both = fleet_server.query(filled_in(expression, Choice(), cluster=".*"), at=END)
            if query.rows == ONE:
                assert len(both) == 1
            elif "cluster" in one[0]["metric"]:
                there = [found["metric"]["cluster"] for found in both]
                assert sorted(there) == [CLUSTER] * len(one) + [OTHER_CLUSTER] * len(one)
            else:
                doubled = [2 * float(found["value"][1]) for found in one]
                assert [float(found["value"][1]) for found in both] == doubled, panel.title


def test_where_there_is_nothing_numbers_are_zero_or_not_there(fleet_server: Prometheus) -> None:
    for dashboard, panel in PANELS:
        for expression, _ in shipped(dashboard, panel):
            text = filled_in(expression, Choice(), cluster="gamma")
            values = [float(one["value"][1]) for one in fleet_server.query(text, at=END)]
            assert values in ([], [0.0]), panel.title
