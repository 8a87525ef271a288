"""An abort of a run whose cluster is gone, was rebuilt, or may only be away."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from gpufleet.cli import upgrade_run
from gpufleet.cli.upgrade import upgrade
from gpufleet.cli.upgrade_clusters import never
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.stopped import Stopped
from gpufleet.kube.findings import (
    API_UNREACHABLE,
    CERTIFICATE_REFUSED,
    KUBECONFIG_MISSING,
    LEASE_LOST,
)
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.upgrade.operations import opening
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.states import State
from tests.unit.upgrade.running import DRAINED
from tests.unit.upgrade.test_abort import Rebuilt, of_two, opened

PROBLEMS = {
    "lost": KUBECONFIG_MISSING(paths="/A"),
    "rebuilt": CERTIFICATE_REFUSED(
        whose="The API server's certificate", context="A", url="u", reason="unknown", advice=""
    ),
    "away": API_UNREACHABLE(context="A", url="u", reason="timed out"),
}
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


def waits(run: Store, is_gone: Callable[[str], bool] = never) -> str:
    """The message of the abort, which cannot end the run."""
    with pytest.raises(Stopped) as error:
        upgrade_run.aborted(run, print, is_gone)
    (finding,) = error.value.findings
    assert finding.code == "GF074"
    assert not run.progress().over
    return finding.message


def test_an_abort_waits_for_a_cluster_that_may_be_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its context leads to another one, and one that does not answer may be it."""
    run = of_two(monkeypatch, *DRAINED, A="new", B="B")
    found = SimpleNamespace(apis=[], unknown=["context 'y' of kubeconfig /y: timed out"])
    monkeypatch.setattr(opening, "search", lambda *how: found)
    message = waits(run)
    assert "context 'y' of kubeconfig /y: timed out" in message
    assert "out of service: h. " in message
    assert run.progress().states == {"h": State.UNCHANGED, "i": State.NOT_REACHED}


def test_a_cluster_that_another_one_replaced_is_not_gone_by_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The file may be that of another cluster with a context of the same name."""
    run = of_two(monkeypatch, *DRAINED, A="new", B="B")
    assert "Context 'A' of /A now points to" in waits(run)
    assert run.progress().states == {"h": State.UNCHANGED, "i": State.NOT_REACHED}


def test_nothing_is_asked_of_the_cluster_that_is_there_now(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond which one it is: also not for kured's lock."""
    run = of_two(monkeypatch, *DRAINED, A="new", B="B")
    said: list[str] = []
    gone = lambda question: True  # noqa: E731
    assert upgrade_run.aborted(run, said.append, gone) is ExitStatus.CONVERGED
    assert run.progress().states["h"] is State.NOT_REACHED
    assert [line for line in said if "kured" in line] == []
    assert asked.count("A") == 1
    assert asked.count("B") > 2


def problem(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why cluster A is not opened."""
    plain = Rebuilt.__init__

    def refused(api: Rebuilt, access: Any) -> None:
        if access.context == "A":
            raise ClusterProblem(PROBLEMS[kind])
        plain(api, access)

    monkeypatch.setattr(Rebuilt, "__init__", refused)


@pytest.mark.parametrize("kind", list(PROBLEMS))
def test_an_abort_ends_a_run_whose_cluster_is_gone_by_its_user(
    kind: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its kubeconfig is gone too, or another authority has its address."""
    run = of_two(monkeypatch, *DRAINED, B="B")
    problem(kind, monkeypatch)
    questions: list[str] = []
    said: list[str] = []
    status = upgrade_run.aborted(run, said.append, lambda text: not questions.append(text))
    assert status is ExitStatus.CONVERGED
    progress = run.progress()
    assert (progress.run, progress.states) == (
        "aborted", {"h": State.NOT_REACHED, "i": State.NOT_REACHED}
    )  # fmt: skip
    (question,) = questions
    assert "Is the cluster of context 'A' of kubeconfig /A gone, with the nodes of h?" in question
    assert "h: its node h is not in the cluster any more" in said
    assert "not in the cluster any more: " in progress.reasons["h"]
    assert Rebuilt.locked == ["B"]
    assert "A" not in asked


def test_an_abort_waits_for_a_cluster_that_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    run = of_two(monkeypatch, *DRAINED, B="B")
    assert "out of service: h. " in waits(run, lambda text: False)
    assert run.progress().states == {"h": State.UNCHANGED, "i": State.NOT_REACHED}


def test_a_cluster_that_another_run_holds_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers."""
    run = of_two(monkeypatch, *DRAINED, A="A", B="B")

    def held(api: Rebuilt, *how: Any) -> None:
        if api.context == "A":
            raise ClusterProblem(LEASE_LOST(holder="another"))

    monkeypatch.setattr(opening, "take_lease", held)
    waits(run, pytest.fail)


@pytest.mark.parametrize("where", ["ClusterApi", "take_lease", "remove_pods"])
def test_a_cluster_that_cannot_be_opened_in_any_way_keeps_no_other_one(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library raises what nobody expects: the hosts of the other cluster are returned."""
    run = of_two(monkeypatch, *DRAINED, A="A", B="B")
    plain = getattr(opening, where)

    def raising(about: Any, *how: Any) -> Any:
        if about.context == "A":
            raise AttributeError("'NoneType' object has no attribute 'token'")
        return plain(about, *how)

    monkeypatch.setattr(opening, where, raising)
    assert "no attribute 'token'" in waits(run, pytest.fail)
    assert run.progress().states == {"h": State.UNCHANGED, "i": State.NOT_REACHED}


@pytest.mark.parametrize(
    ("words", "answer", "gone"),
    [
        (["--cluster-gone", "--yes"], "", True),
        (["--cluster-gone"], "y\n", True),
        (["--cluster-gone"], "n\n", False),
        ([], "", False),
        (["--yes"], "", False),
    ],
)
def test_a_user_says_that_a_cluster_is_gone(
    words: list[str], answer: str, gone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = of_two(monkeypatch, *DRAINED, B="B")
    problem("lost", monkeypatch)
    monkeypatch.setattr("gpufleet.cli.upgrade.confirmed", lambda yes, options: None)
    found = CliRunner().invoke(upgrade, ["abort", "--run", run.name, *words], input=answer)
    assert (found.exit_code, "GF074" in found.output) == (int(not gone), not gone), found.output
    assert ("Is the cluster of context 'A'" in found.output) is bool(answer)
    assert run.progress().over is gone
    assert gone or "--cluster-gone` ends the run" in " ".join(found.output.split())


def test_a_user_who_cannot_be_asked_says_yes_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    run = of_two(monkeypatch, *DRAINED, B="B")
    found = CliRunner().invoke(upgrade, ["abort", "--run", run.name, "--cluster-gone"])
    assert (found.exit_code, "--yes" in found.output) == (2, True)
    assert run.request == ""


def test_a_process_at_work_does_not_hear_that_a_cluster_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = of_two(monkeypatch, *DRAINED, B="B")
    at_work = Store(run.path)
    at_work.lock()
    found = CliRunner().invoke(upgrade, ["abort", "--run", run.name, "--cluster-gone", "--yes"])
    assert (found.exit_code, run.request) == (1, "abort")
    assert "interrupt it, then repeat" in found.output
