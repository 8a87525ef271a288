"""An abort of a run whose cluster is gone, was rebuilt, or may only be away."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.cli import upgrade_run
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.stopped import Stopped
from gpufleet.upgrade.operations import opening
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.states import State
from tests.unit.upgrade.running import DRAINED
from tests.unit.upgrade.test_abort import Rebuilt, of_two, opened

__all__ = ["opened"]  # the fixture


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The contexts of the clusters that are asked for anything."""
    contexts: list[str] = []
    for method in ("get", "list", "find", "create"):
        plain = getattr(Rebuilt, method)

        def noted(api: Rebuilt, *how: Any, _plain: Any = plain) -> Any:
            contexts.append(api.context)
            return _plain(api, *how)

        monkeypatch.setattr(Rebuilt, method, noted)
    return contexts


def waits(run: Store) -> str:
    """The message of the abort, which cannot end the run."""
    with pytest.raises(Stopped) as error:
        upgrade_run.aborted(run, print)
    (finding,) = error.value.findings
    assert finding.code == "GF074"
    assert not run.progress().over
    return finding.message


def test_an_abort_waits_for_a_cluster_that_may_be_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its context leads to another one, and one that does not answer may be it."""
    run = of_two(monkeypatch, *DRAINED, A="new", B="B")

    class Found:
        api, unknown, tried = None, ["context 'y' of kubeconfig /y: timed out"], ""

    monkeypatch.setattr(opening, "search", lambda *how: Found)
    message = waits(run)
    assert "context 'y' of kubeconfig /y: timed out" in message
    assert "out of service: h. " in message
    assert run.progress().states == {"h": State.UNCHANGED, "i": State.NOT_REACHED}


def test_nothing_is_asked_of_the_cluster_that_is_there_now(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond which one it is: also not for kured's lock."""
    run = of_two(monkeypatch, *DRAINED, A="new", B="B")
    said: list[str] = []
    assert upgrade_run.aborted(run, said.append) is ExitStatus.CONVERGED
    assert run.progress().states["h"] is State.NOT_REACHED
    assert [line for line in said if "kured" in line] == []
    assert asked.count("A") == 1
    assert asked.count("B") > 2
