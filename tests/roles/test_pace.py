"""Each host goes through its operations at its own pace, on fake hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import pytest
from gevent.event import Event
from pyinfra import host
from pyinfra.api import Config, FunctionCommand, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.state import BaseStateCallback
from pyinfra.operations import python

from gpufleet.core.inventory import CLUSTERS
from gpufleet.host.operation import Commands, host_operation, one_by_one
from gpufleet.run.pace import run_at_own_pace
from gpufleet.run.reporting import RunReport

FAKE = {"fake_delay": 0.0, "fake_delay_jitter": 0.0}
SECONDS = 30  # an operation that waits for another host, which it must not
Done = list[tuple[str, str]]


@host_operation
def call(function: Callable[[str], bool]) -> Commands:
    """
    Call a function.

    + function: takes the host's name; False fails the operation
    """
    yield FunctionCommand(lambda state, host: function(host.name), (), {})


@one_by_one
def call_in_turn(function: Callable[[str], bool]) -> Commands:
    """
    Call a function on one host after the other.

    + function: takes the host's name; False fails the operation
    """
    yield FunctionCommand(lambda state, host: function(host.name), (), {})


@pytest.fixture
def done() -> Done:
    """The calls in order: host and word."""
    return []


def state_of(*names: str, clusters: tuple[str, ...] = (), **config: Any) -> State:
    hosts = [(f"@fake/{name}", FAKE) for name in (*names, *clusters)]
    groups: Any = {CLUSTERS: ([f"@fake/{name}" for name in clusters], {})} if clusters else {}
    state = State(Inventory((hosts, {}), {}, **groups), Config(**config), check_for_changes=False)
    connect_all(state)
    return state


def note(done: Done, word: str, fails: str = "") -> Callable[[str], bool]:
    def noted(name: str) -> bool:
        name = name.removeprefix("@fake/")
        done.append((name, word))
        return name != fails

    return noted


def run(state: State, deploy: Callable[[], None]) -> None:
    state.add_callback_handler(RunReport(state))
    add_deploy(state, deploy)
    run_at_own_pace(state)


def test_a_host_does_not_wait_for_another(done: Done) -> None:
    ended = Event()

    def wait(name: str) -> bool:
        return name != "@fake/locked" or bool(ended.wait(SECONDS))

    def end(name: str) -> bool:
        ended.set()
        return note(done, "last")(name)

    def deploy() -> None:
        call("Wait for the lock", wait)
        call("Note the last", end)

    state = state_of("locked", "free")
    run(state, deploy)
    assert done == [("free", "last"), ("locked", "last")]
    assert not state.failed_hosts


def test_an_operation_begins_and_ends_once(done: Done) -> None:
    state = state_of("one", "two")
    seen: list[str] = []

    class Seen(BaseStateCallback):
        @staticmethod
        def operation_start(state: State, op_hash: str) -> None:
            seen.append("start")

        @staticmethod
        def operation_end(state: State, op_hash: str) -> None:
            seen.append("end")

    state.add_callback_handler(Seen())
    run(state, lambda: call("Note", note(done, "note")))
    assert seen == ["start", "end"]


def test_all_wait_where_hosts_take_turns(done: Done) -> None:
    def deploy() -> None:
        call("Start", note(done, "start"))
        call_in_turn("Join", note(done, "join"))
        call("End", note(done, "end"))

    run(state_of("one", "two"), deploy)
    assert [word for _, word in done] == ["start", "start", "join", "join", "end", "end"]


def test_all_wait_around_an_operation_of_a_user(done: Done) -> None:
    def start(name: str) -> bool:
        gevent.sleep(0.05 if name == "@fake/one" else 0)
        return note(done, "start")(name)

    def deploy() -> None:
        call("Start", start)
        python.call(name="Own", function=lambda: note(done, "own")(host.name))
        call("End", note(done, "end"))

    run(state_of("one", "two"), deploy)
    assert [word for _, word in done] == ["start", "start", "own", "own", "end", "end"]


def test_a_user_limits_the_hosts_at_once(done: Done) -> None:
    most, now = [0], [0]

    def own() -> None:
        now[0] += 1
        most[0] = max(most[0], now[0])
        gevent.sleep(0)
        now[0] -= 1

    run(state_of("a", "b", "c", "d"), lambda: python.call(name="Own", function=own, _parallel=2))
    assert most == [2]


def test_a_cluster_waits_for_the_hosts(done: Done) -> None:
    def deploy() -> None:
        if CLUSTERS in host.groups:
            for _ in host.loop(["of a deploy of its own"]):
                call("Release", note(done, "release"))
        else:
            call("Download", note(done, "download"))
            call("Install", note(done, "install"))

    state = state_of("one", "two", clusters=("east",))
    run(state, deploy)
    assert done[-1] == ("east", "release")
    assert len(done) == 5


def test_a_host_that_fails_stops_alone(done: Done) -> None:
    def deploy() -> None:
        call("Start", note(done, "start", fails="bad"))
        call("End", note(done, "end"))

    state = state_of("bad", "good")
    run(state, deploy)
    assert sorted(done) == [("bad", "start"), ("good", "end"), ("good", "start")]
    assert [failed.name for failed in state.failed_hosts] == ["@fake/bad"]


def test_the_others_stop_where_too_many_fail(done: Done) -> None:
    failed = Event()

    def start(name: str) -> bool:
        if name == "@fake/good":
            return bool(failed.wait(SECONDS))
        failed.set()
        return False

    def deploy() -> None:
        call("Start", start)
        call("End", note(done, "end"))

    with pytest.raises(PyinfraError, match="20%"):
        run(state_of("bad", "good", FAIL_PERCENT=20), deploy)
    assert done == []
