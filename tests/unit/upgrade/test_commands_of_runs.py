"""The commands of users that a run starts for its hosts: taken back, ended, reported."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpufleet.core.stopped import Stopped
from gpufleet.upgrade.decide import Act, Around, Do, decide
from gpufleet.upgrade.operations import hooks, runner
from gpufleet.upgrade.operations.draining import drain, is_out, leave
from gpufleet.upgrade.operations.hooks import Hook
from gpufleet.upgrade.progress import Progress
from gpufleet.upgrade.states import Event, State
from tests.unit.upgrade.running import CHANGING, DRAINED, HOST, Steps, planned, running, state

pytestmark = pytest.mark.usefixtures("own_folder")


def test_a_command_that_did_not_start_is_not_taken_back(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    run = running(
        planned(), Steps(), *DRAINED[:2], drain_command="/no/such", ready_command=f"touch {mark}"
    )
    drain(run, ["h"])
    assert state(run) is State.LEAVING
    runner.give_back(run, ["h"])
    assert state(run) is State.PASSED
    assert not mark.exists()


def test_a_command_that_failed_is_taken_back(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    run = running(
        planned(), Steps(), *DRAINED[:2], drain_command="false", ready_command=f"touch {mark}"
    )
    while state(run) is State.DRAINING:
        drain(run, ["h"])
    runner.give_back(run, ["h"])
    assert mark.exists()


def test_a_command_that_succeeded_keeps_no_file_open() -> None:
    """A run over a large fleet starts one for each host."""
    run = running(planned(), Steps(), *DRAINED[:2], drain_command="true")
    while not is_out(run, "h"):
        pass
    hook = run.hooks.polled["h"]
    assert hook.output.closed
    assert is_out(run, "h")  # in the next round, too
    leave(run, ["h"])
    assert state(run) is State.LEAVING


def test_a_command_that_fails_keeps_no_other_host_out_of_service() -> None:
    """They are finished; then the process ends, for a resume with a correct command."""
    progress = Progress(planned(replace(HOST, name="other")))
    for of_other, what in ((State.FAILED, Do.RESTORE), (State.DRAINING, Do.DRAIN)):
        progress.states |= {"h": State.CHANGED, "other": of_other}
        assert decide(progress, Around(1.0, unreturned=("h",))) == Act(what, ("other",))
    run = running(planned(), Steps(), *CHANGING, Event.CHANGED, ready_command="false")
    said: list[str] = []
    run.say = said.append
    runner.give_back(run, ["h"])
    assert state(run) is State.CHANGED
    assert said == ["h: upgrade_ready_command: exit status 1: no output"]
    with pytest.raises(Stopped) as error:
        runner.carry_on(run)
    assert [each.code for each in error.value.findings] == ["GF066"]
    assert state(run) is State.CHANGED


def test_an_abort_goes_on_without_a_command_that_fails() -> None:
    run = running(planned(), Steps(), *CHANGING, Event.CHANGED, ready_command="false")
    run.store.ask("abort")
    assert runner.carry_on(run).event == "aborted"
    assert state(run) is State.DONE
    assert "exit status 1" in run.progress.reasons["h"]


def is_running(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_command_ends_with_what_it_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what ignores SIGTERM."""
    monkeypatch.setattr(hooks, "GRACE", 0.1)
    inner = r"trap \"\" TERM; echo \$\$; while :; do sleep 0.1; done"
    run = running(planned(), Steps())
    hook = run.hooks.start(f"sh -c 'sh -c \"{inner}\"; true'", "h", 60.0)
    while not hook.output.seek(0, 2):
        pass
    hook.output.seek(0)
    child = int(hook.output.read())
    run.stop()
    assert hook.process.returncode is not None
    ends = time.monotonic() + 10
    while (runs := is_running(child)) and time.monotonic() < ends:
        pass  # the kernel needs a moment
    assert not runs
    with pytest.raises(InterruptedError):
        run.hooks.start("true", "h", 1.0)


@pytest.fixture
def by_sudo(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A command of another user that runs until the test has ended."""
    monkeypatch.setattr(hooks, "GRACE", 0.05)
    sent = os.killpg

    def refused(group: int, number: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "killpg", refused)
    started: list[Hook] = []
    yield lambda run, limit: started.append(run.hooks.start("sleep 60", "h", limit)) or started[-1]
    for hook in started:
        sent(hook.process.pid, signal.SIGKILL)
        hook.process.wait()


def test_a_command_of_another_user_is_reported(by_sudo: Any) -> None:
    """As by sudo: it cannot be ended, and is not waited for without an end."""
    hook = by_sudo(running(planned(), Steps()), 0.0)
    assert "cannot be ended" in hook.wait()
    assert "cannot be ended" in (hook.poll() or "")
    run = running(planned(), Steps(), *DRAINED[:2])
    run.hooks.polled["h"] = by_sudo(run, 60.0)
    leave(run, ["h"])
    assert "cannot be ended" in run.progress.reasons["h"]


def test_every_command_is_ended_for_itself(by_sudo: Any) -> None:
    run = running(planned(), Steps())
    several = [by_sudo(run, 60.0) for _ in range(2)]
    run.stop()
    assert all("cannot be ended" in each.wait() for each in several)


def test_all_commands_have_the_same_time_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "GRACE", 0.2)
    run = running(planned(), Steps())
    text = "sh -c 'trap \"\" TERM; echo; while :; do sleep 0.1; done'"
    several = [run.hooks.start(text, name, 60.0) for name in ("a", "b")]
    for hook in several:
        while not hook.output.seek(0, 2):
            pass
    sent: list[int] = []
    send = os.killpg
    monkeypatch.setattr(os, "killpg", lambda *how: sent.append(how[1]) or send(*how))
    run.stop()
    assert [each for each in sent if each] == [signal.SIGTERM] * 2 + [signal.SIGKILL] * 2
    assert [hook.process.returncode for hook in several] == [-signal.SIGKILL] * 2


def test_no_signal_for_a_group_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one may have its number."""
    hook = running(planned(), Steps()).hooks.start("sleep 60", "h", 60.0)
    sent: list[int] = []
    send = os.killpg
    monkeypatch.setattr(os, "killpg", lambda *how: sent.append(how[1]) or send(*how))
    hook.end()
    assert signal.SIGKILL not in sent


def test_of_a_long_output_the_end_is_shown() -> None:
    text = "import sys; sys.stdout.write('password: ' + 'x' * 99999 + chr(10) + 'the end')"
    run = running(planned(), Steps())
    said = run.hooks.result(f'{sys.executable} -c "{text}; sys.exit(1)"', "h", 60.0)
    assert said == "exit status 1: the end"
