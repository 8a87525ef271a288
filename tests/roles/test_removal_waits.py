"""A removal waits for what the API says a moment too late."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.gpu_stack.operations import removal

KINDS = {"/api/v1/{}secrets": "Secret"}
GONE = ["monitoring.coreos.com/v1"]
OTHERS = ["metrics.k8s.io/v1beta1"]


PLAN = SimpleNamespace(crds=(SimpleNamespace(name="prometheusrules.monitoring.coreos.com"),))


def at_work(*, acted: bool) -> Any:
    return SimpleNamespace(api=None, acted=acted, plan=PLAN)


@pytest.mark.parametrize(("acted", "groups", "silent"), [
    (True, GONE, []), (False, GONE, GONE), (True, OTHERS, OTHERS),
])  # fmt: skip
def test_groups_of_deleted_crds_are_listed_for_a_moment(
    acted: bool, groups: list[str], silent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where this run deleted something: a silent API of others is reported at once."""
    answers = iter([(KINDS, groups), (KINDS, groups), (KINDS, [])])
    monkeypatch.setattr(removal, "namespaced", lambda api: next(answers))
    monkeypatch.setattr(removal, "state", SimpleNamespace(is_executing=True))
    monkeypatch.setattr(removal, "LOOK_EVERY", 0)
    assert removal._answering(at_work(acted=acted)) == (KINDS, silent)


def test_an_api_that_stays_silent_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(removal, "namespaced", lambda api: (KINDS, GONE))
    monkeypatch.setattr(removal, "state", SimpleNamespace(is_executing=True))
    monkeypatch.setattr(removal, "LOOK_EVERY", 0)
    monkeypatch.setattr(removal, "PATIENCE", 0.0)
    assert removal._answering(at_work(acted=True)) == (KINDS, GONE)
