"""The numbers that the panels show, against what the fleet was made with."""

from __future__ import annotations

import pytest

from dashboards.model import ONE, Dashboard, Panel
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


@pytest.mark.claim("Every panel shows the right numbers.", level=6)
@pytest.mark.parametrize(("dashboard", "panel", "choice"), CASES)
def test_a_panel_shows_the_right_numbers(
    fleet_server: Prometheus, dashboard: Dashboard, panel: Panel, choice: str
) -> None:
    chosen = CHOICES[choice].only(dashboard.variables)
    answers = ANSWERS[dashboard.name][panel.title]
    for (expression, query), answer in zip(shipped(dashboard, panel), answers, strict=True):
        text = filled_in(expression, chosen)
        found = {
            tuple(one["metric"][label] for label in query.rows.labels): float(one["value"][1])
            for one in fleet_server.query(text, at=END)
        }
        assert found == pytest.approx(answer(chosen), rel=NEAR), text


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
