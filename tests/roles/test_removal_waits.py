"""A removal waits for what the API says a moment too late."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.gpu_stack.operations import removal as operations
from gpufleet.gpu_stack.operations import removal_deletes as removal
from gpufleet.gpu_stack.operations.removal_deletes import ClusterRemoval
from gpufleet.gpu_stack.operations.removal_reads import Contents, Unanswered
from gpufleet.gpu_stack.remains import Leaving, Owned, is_leaving
from gpufleet.gpu_stack.removal import StackRemoval
from gpufleet.kube.facts import ObjectRef

GONE = Unanswered("monitoring.coreos.com", "monitoring.coreos.com/v1", "404 NotFound")
OTHERS = Unanswered("metrics.k8s.io", "metrics.k8s.io/v1beta1", "503 no endpoints")
SPACE: dict[str, Any] = {"metadata": {"name": "monitoring"}}
RULES = SimpleNamespace(name="prometheusrules.monitoring.coreos.com")


def at_work(*, acted: bool, templated: bool = False) -> Any:
    crds, others = ((), (RULES,)) if templated else ((RULES,), ())
    return SimpleNamespace(acted=acted, plan=StackRemoval(crds=crds, templated=others))  # type: ignore[arg-type]


def silent(*apis: Unanswered) -> Contents:
    return Contents({}, apis, SPACE)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "state", SimpleNamespace(is_executing=True))
    monkeypatch.setattr(removal, "LOOK_EVERY", 0)


@pytest.mark.parametrize("templated", [False, True])
@pytest.mark.parametrize(("acted", "api", "looks"), [
    (True, GONE, 3), (False, GONE, 1), (True, OTHERS, 1),
])  # fmt: skip
def test_groups_of_deleted_crds_are_listed_for_a_moment(
    acted: bool, api: Unanswered, looks: int, templated: bool, at_once: None
) -> None:
    """Only where this run deleted something: a silent API of others is reported at once."""
    answers = [silent(api), silent(api), silent()]
    at = at_work(acted=acted, templated=templated)
    found = removal.settled(at, lambda: answers.pop(0), is_leaving)
    assert found == (silent() if looks == 3 else silent(api))
    assert len(answers) == 3 - looks


def test_an_api_that_stays_silent_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch, at_once: None
) -> None:
    monkeypatch.setattr(removal, "PATIENCE", 0.0)
    found = removal.settled(at_work(acted=True), lambda: silent(GONE), is_leaving)
    assert found == silent(GONE)


@pytest.mark.parametrize("unknown", [(OTHERS,), ()])
def test_a_removal_that_does_not_know_what_a_namespace_has_fails(
    unknown: tuple[Unanswered, ...], carry_out: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = Contents({ObjectRef("Pod", "monitoring", "web"): SPACE} if not unknown else {},
                        unknown, SPACE)  # fmt: skip
    monkeypatch.setattr(operations, "namespace_contents", lambda api, path: contents)
    space = Owned(ObjectRef("Namespace", "", "monitoring"), "/api/v1/namespaces/monitoring")
    run: Any = SimpleNamespace(
        cluster=SimpleNamespace(api=None), report=SimpleNamespace(findings=[])
    )
    found = ClusterRemoval(run, StackRemoval(namespaces=(space,)), Leaving())
    fake = carry_out(lambda: operations.delete_namespaces("Delete the empty namespaces", found))
    codes = [each.code for each in run.report.findings]
    assert (fake.failed, codes) == ((True, ["GF981"]) if unknown else (False, ["GF975"]))
