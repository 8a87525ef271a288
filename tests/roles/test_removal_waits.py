"""A removal waits for what the API says a moment too late."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.gpu_stack.operations import removal

KINDS = {"/api/v1/{}secrets": "Secret"}
GONE = ["monitoring.coreos.com/v1"]


@pytest.mark.parametrize(("acted", "silent"), [(True, []), (False, GONE)])
def test_groups_of_deleted_crds_are_listed_for_a_moment(
    acted: bool, silent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where this run deleted something: a silent API of others is reported at once."""
    answers = iter([(KINDS, GONE), (KINDS, GONE), (KINDS, [])])
    monkeypatch.setattr(removal, "namespaced", lambda api: next(answers))
    monkeypatch.setattr(removal, "state", SimpleNamespace(is_executing=True))
    monkeypatch.setattr(removal, "LOOK_EVERY", 0)
    at_work: Any = SimpleNamespace(api=None, acted=acted)
    assert removal._answering(at_work) == (KINDS, silent)


def test_an_api_that_stays_silent_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(removal, "namespaced", lambda api: (KINDS, GONE))
    monkeypatch.setattr(removal, "state", SimpleNamespace(is_executing=True))
    monkeypatch.setattr(removal, "PATIENCE", 0.0)
    at_work: Any = SimpleNamespace(api=None, acted=True)
    assert removal._answering(at_work) == (KINDS, GONE)
