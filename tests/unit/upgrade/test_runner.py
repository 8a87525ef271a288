"""What a run writes down when it is interrupted, and before it takes a host back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from gpufleet.cli.upgrade_run import returning
from gpufleet.core.stopped import Stopped
from gpufleet.upgrade.models import HostView, Plan
from gpufleet.upgrade.operations import hooks
from gpufleet.upgrade.operations.children import Children, Result
from gpufleet.upgrade.operations.hooks import Hook
from gpufleet.upgrade.operations.runner import Runner
from gpufleet.upgrade.operations.store import Order, Store
from gpufleet.upgrade.plan import make_plan, reversed_plan
from gpufleet.upgrade.progress import Entry
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.upgrade.states import Event, State

HOST = HostView("h", "a", "d", "k", "580.1", "580.1", "580.2")
DRAINED = (Event.PREPARED, Event.DRAIN_BEGAN, Event.DRAINED)


class Steps:
    """Steps in memory; `before` happens while one is under way."""

    def __init__(self, result: Result) -> None:
        self.result, self.asked = result, [""]
        self.before: Callable[[], None] = lambda: None

    def step(self, step: str, hosts: Sequence[str], version: str) -> dict[str, Result]:
        self.asked.append(step)
        self.before()
        return dict.fromkeys(hosts, self.result)

    def end(self) -> None:
        pass


def planned() -> Plan:
    return make_plan([HOST], UpgradeSettings.model_validate({}))


def runner(plan: Plan, steps: Steps, *events: Event, **settings: Any) -> Runner:
    store = Store.create(Order("prod.py", "/"), plan)
    for event in events:
        store.append(Entry(1.0, event.value, "h"))
    chosen = {"h": UpgradeSettings.model_validate(settings)}
    return Runner(store, plan, chosen, cast(Children, steps), lambda line: None)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_a_preparation_that_was_interrupted_refuses_no_host() -> None:
    steps = Steps(Result(False, "SIGTERM"))
    run = runner(planned(), steps)
    steps.before = run.stop
    run.prepare(["h"])
    assert run.progress.states == {"h": State.WAITING}


def test_a_check_that_was_interrupted_rolls_nothing_back() -> None:
    run = runner(planned(), Steps(Result(True)), *DRAINED)

    def checked(results: object) -> dict[str, Result]:
        run.stop()
        return {"h": Result(False, "exit status -2")}

    run.checked = checked  # type: ignore[method-assign]
    run.change(["h"])
    assert run.progress.states == {"h": State.CHANGING}


def test_a_drain_command_that_was_interrupted_gives_no_host_up() -> None:
    run = runner(planned(), Steps(Result(True)), *DRAINED[:2], drain_command="false")
    run.hooks["h"] = Hook("false", "h", 60.0)
    run.hooks["h"].process.wait()
    run.stop()
    assert not run.is_out("h")
    assert run.progress.states == {"h": State.DRAINING}


@pytest.mark.parametrize(
    ("found", "state"), [("580.1", State.READY), ("580.0", State.REFUSED), ("", State.REFUSED)]
)
def test_a_host_without_its_packages_is_not_taken_back(found: str, state: State) -> None:
    plan = reversed_plan(planned(), ["h"])
    run = runner(plan, Steps(Result(True, plan={"kept": found})))
    run.prepare(["h"])
    assert run.progress.states == {"h": state}
    assert cast(Steps, run.children).asked[-1] == "look"


def test_a_roll_back_is_not_rolled_back() -> None:
    run = runner(
        reversed_plan(planned(), ["h"]), Steps(Result(True)),
        *DRAINED, Event.CHANGE_BEGAN, Event.CHANGED, Event.RETURNED,
    )  # fmt: skip
    run.write("finished")
    with pytest.raises(Stopped) as error:
        returning(run.store)
    assert error.value.findings[0].code == "GF065"


def test_texts_of_hosts_are_one_line() -> None:
    run = runner(planned(), Steps(Result(True)))
    run.write(Event.REFUSED.value, "h", "process \x1b[2J\nhost: done")
    assert run.progress.reasons["h"].isprintable()


def test_a_command_that_ignores_its_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "GRACE", 0.1)
    hook = Hook("sh -c 'trap \"\" TERM; echo on; while :; do sleep 0.1; done'", "h", 60.0)
    while not hook.output.seek(0, 2):
        pass
    hook.end()
    assert hook.process.returncode == -9
