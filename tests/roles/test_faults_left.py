"""A fault of the GPUs that no step puts right: the steps run, then the host fails."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from runpy import run_path
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operations import run_ops

from gpufleet.core.paths import shipped_path
from gpufleet.run.report import HostReport
from gpufleet.run.reporting import RunReport
from tests.roles.answers import facts_of
from tests.roles.host_boundary_setup import CAPTURE

ALONE = {"driver_enabled": False, "toolkit_enabled": False}


def deploy() -> None:
    run_path(str(shipped_path("deploys") / "gpu_node.py"))


def plan() -> None:
    run_path(str(shipped_path("deploys") / "preflight.py"))


@pytest.fixture(autouse=True)
def _unlocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake host knows no lock."""
    monkeypatch.setattr("gpufleet.host.lock.arm_lock", lambda host, facts: None)


def applied(run: Callable[[], None] = deploy, *, capture: str = CAPTURE, **data: Any) -> HostReport:
    """A run on a host for which no role has anything to do."""
    answers = {"uname -nrm": facts_of(capture)}
    common = {"fake_delay": 0.0, "fake_delay_jitter": 0.0, "fake_responses": answers}
    state = State(Inventory((["@fake/host"], {**common, **ALONE, **data}), {}), Config())
    report = RunReport(state)
    state.add_callback_handler(report)
    connect_all(state)
    if run is plan:
        with suppress(PyinfraError):  # of a host that fails, and is the only one
            add_deploy(state, run)
        return report.gather()[0]
    add_deploy(state, run)
    if state.ops[next(iter(state.inventory))]:
        state.is_executing = True
        with pytest.raises(PyinfraError, match="No hosts remaining"):
            run_ops(state)
    (part,) = report.gather()
    return part


def test_a_host_with_too_few_gpus_fails_at_the_end() -> None:
    part = applied(node_gpus=99)
    assert part.status == "failed"
    found = [each for each in part.findings if each.code == "GF152"]
    assert [each.blocks for each in found] == [True], "once, and no longer as a warning"


@pytest.mark.parametrize("run", [plan, deploy])
def test_a_host_that_lost_its_gpus_keeps_its_versions(run: Callable[[], None]) -> None:
    gpus = [line for line in CAPTURE.splitlines(keepends=True) if " 0x20b2 " in line]
    capture = CAPTURE
    for line in gpus:
        capture = capture.replace(line, "")
    part = applied(run, capture=capture, node_gpus=len(gpus), toolkit_enabled=True)
    assert (part.status, len(gpus)) == ("failed", 2)
    for name in ("driver", "toolkit"):
        found = part.roles[name]
        assert found["before"] == found["after"], name
        assert found["after"], name


def test_the_plan_of_such_a_host_fails_too() -> None:
    part = applied(plan, node_gpus=99)
    found = [each for each in part.findings if each.code == "GF152"]
    assert (part.status, [each.blocks for each in found]) == ("failed", [True])


@pytest.mark.parametrize("run", [plan, deploy])
def test_an_accepted_fault_fails_neither_plan_nor_run(run: Callable[[], None]) -> None:
    accepted = {"GF152": "until 2999-12-31, RMA 4711"}
    part = applied(run, node_gpus=99, accepted_findings=accepted)
    assert (part.status, [each.code for each in part.accepted]) == ("converged", ["GF152"])


def test_a_plan_with_steps_shows_them_and_the_fault() -> None:
    part = applied(plan, node_gpus=99, toolkit_enabled=True)
    found = [each for each in part.findings if each.code == "GF152"]
    assert (part.status, [each.blocks for each in found]) == ("planned", [False])
    assert part.steps


def test_a_host_with_its_gpus_has_no_step() -> None:
    part = applied()
    assert (part.status, part.changed) == ("converged", 0)
