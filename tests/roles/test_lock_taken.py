"""The lock on a host, with fake hosts; tests/hosts/test_host_lock.py has real ones."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import gevent
import pytest
from gevent.event import Event
from pyinfra import host, state

from gpufleet.core.stopped import Stopped
from gpufleet.facts.model import STEP_LOCK
from gpufleet.host import lock as host_lock
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import quote_command
from gpufleet.run.reporting import RunReport
from tests.roles.answers import framed_lines
from tests.unit.hosts import bare_host

pytestmark = pytest.mark.claim(
    "The lock of a host ends with its run, also if the run is killed, and not before the "
    "step in progress ends.",
    level=2,
)


@host_operation
def change(*words: str) -> Commands:
    """
    Change something.

    + words: the command; empty for no change
    """
    for word in words:
        yield quote_command(word)


def deploy(*words: str) -> Callable[[], None]:
    def run() -> None:
        state.add_callback_handler(RunReport(state))
        host_lock.arm_lock(host, bare_host(run_lock="alice [1]"))
        change("Change", *words)
        change("Change more", *words)

    return run


@pytest.mark.parametrize(
    ("said", "code"),
    [("held bob at desk [2]", "GF508"), ("changed bob at desk [2]", "GF509"), ("", "GF502")],
)
def test_without_the_lock_nothing_is_changed(
    carry_out: Callable[..., Any], said: str, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    answers = {"hold_host": {"stdout": framed_lines(said), "success": False}}
    done = carry_out(deploy("first", "second"), answers)
    assert done.failed
    assert "first" not in done.commands
    assert f"{code} " in caplog.text
    assert ("bob at desk" in caplog.text) is bool(said)


def test_what_changes_nothing_takes_no_lock(carry_out: Callable[..., Any]) -> None:
    done = carry_out(deploy())
    assert not done.failed
    assert done.commands == []


def test_the_first_change_takes_it_for_all(
    carry_out: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []

    def take(lock: host_lock.HostLock, _: Any) -> None:
        taken.append(lock.seen)
        monkeypatch.setattr(host_lock.HostLock, "held", True)

    monkeypatch.setattr(host_lock.HostLock, "take", take)
    done = carry_out(deploy("first", "second"))
    steps = [command for command in done.commands if STEP_LOCK in command]
    assert len(steps) == len(done.commands) == 4
    for step, word in zip(steps, ["first", "second"] * 2, strict=True):
        assert f"{{ {word} ;" in step
    assert taken == ["alice [1]"]


class Host:
    """A host on which the lock is held, then free, then held by another run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name = "gpu-1"
        self.said = "."
        self.ended = Event()
        self.text = ""
        monkeypatch.setattr(host_lock, "_hold", self.hold)
        monkeypatch.setattr(host_lock, "_content", lambda host: self.text)
        monkeypatch.setattr(host_lock, "privilege_arguments", lambda host: {})

    def hold(self, *_: Any) -> host_lock.Ended:
        self.ended.wait()
        return [self.said], []


@pytest.mark.parametrize(("word", "code"), [("held", "GF508"), ("changed", "GF509")])
def test_a_lock_lost_to_another_run_is_no_run_that_changed_nothing(
    word: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Host(monkeypatch)
    lock = host_lock.HostLock("alice [1]")
    place.text = lock.text
    lock.take(cast(Any, place))
    assert lock.held
    place.text, place.said = "bob [2]", f"{word} bob [2]"
    place.ended.set()
    with pytest.raises(Stopped) as caught:
        lock.take(cast(Any, place))
    (finding,) = caught.value.findings
    assert (finding.code, "bob" in finding.message) == (code, True)
    assert "changed nothing more." in finding.message


def test_after_a_reboot_the_lock_is_free_to_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = host_lock.HostLock("alice [1]")
    lock.renew()  # it was not needed
    place = Host(monkeypatch)
    place.text = lock.text
    lock.take(cast(Any, place))
    holding = lock._holding
    assert holding
    lock.renew()
    gevent.sleep(0)
    assert (holding.dead, lock.held, lock.seen) == (True, False, "")


@pytest.mark.parametrize("word", ["held", "changed"])
def test_two_names_of_one_machine_are_named(
    carry_out: Callable[..., Any], word: str, caplog: pytest.LogCaptureFixture
) -> None:
    other = SimpleNamespace(name="gpu-1", connector_data={})
    host_lock.arm_lock(cast(Any, other), bare_host())
    lock = host_lock.lock_of(cast(Any, other))
    assert lock
    answers = {"hold_host": {"stdout": framed_lines(f"{word} {lock.text}"), "success": False}}
    done = carry_out(deploy("first"), answers)
    assert done.failed
    assert "GF559 " in caplog.text
    assert "@fake/host and gpu-1 are the same machine" in caplog.text
    assert "first" not in done.commands
