"""A removal waits for what the API says a moment too late."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.gpu_stack.operations import removal_deletes as removal
from gpufleet.gpu_stack.operations.removal_reads import Contents, Unanswered

GONE = Unanswered("monitoring.coreos.com", "monitoring.coreos.com/v1", "404 NotFound")
OTHERS = Unanswered("metrics.k8s.io", "metrics.k8s.io/v1beta1", "503 no endpoints")
SPACE: dict[str, Any] = {"metadata": {"name": "monitoring"}}
PLAN = SimpleNamespace(crds=(SimpleNamespace(name="prometheusrules.monitoring.coreos.com"),))


def at_work(*, acted: bool) -> Any:
    return SimpleNamespace(api=None, acted=acted, plan=PLAN)


def silent(*apis: Unanswered) -> Contents:
    return Contents({}, apis, SPACE)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "state", SimpleNamespace(is_executing=True))
    monkeypatch.setattr(removal, "LOOK_EVERY", 0)


@pytest.mark.parametrize(("acted", "api", "looks"), [
    (True, GONE, 3), (False, GONE, 1), (True, OTHERS, 1),
])  # fmt: skip
def test_groups_of_deleted_crds_are_listed_for_a_moment(
    acted: bool, api: Unanswered, looks: int
) -> None:
    """Only where this run deleted something: a silent API of others is reported at once."""
    answers = [silent(api), silent(api), silent()]
    found = removal.settled(at_work(acted=acted), lambda: answers.pop(0))
    assert found == (silent() if looks == 3 else silent(api))
    assert len(answers) == 3 - looks


def test_an_api_that_stays_silent_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(removal, "PATIENCE", 0.0)
    assert removal.settled(at_work(acted=True), lambda: silent(GONE)) == silent(GONE)
