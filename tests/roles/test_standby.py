"""A process that forks for steps: each is pyinfra's. Real processes."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpufleet.cli.upgrade_signals import without_hangup
from gpufleet.upgrade.operations import process
from gpufleet.upgrade.operations.children import Children
from gpufleet.upgrade.operations.standby import LOST, PYINFRA, Forked, Standby
from gpufleet.upgrade.operations.step_report import Report
from gpufleet_sandbox.waiting import wait_until

OWNER = """
import time
from gpufleet.upgrade.operations.standby import Standby
print(Standby().process.pid, flush=True)
time.sleep(60)
"""
WAITS = "import time\nfrom pathlib import Path\nPath('waits').touch()\ntime.sleep(60)\nhosts = []\n"
DEBUG = [*PYINFRA, "inv.py", "debug-inventory"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("standby")


@pytest.fixture(scope="module")
def standby() -> Iterator[Standby]:
    made = Standby()
    yield made
    made.end()
    made.end()  # by two signals
    made.process.wait(60)


def started(standby: Standby, words: list[str], log: Path, **variables: str) -> Forked:
    log.touch()
    step = standby.begin(words, str(log.parent), {**os.environ, **variables}, log)
    assert step
    return step


def test_a_step_is_pyinfra_with_its_arguments_variables_and_output(
    standby: Standby, folder: Path
) -> None:
    (folder / "inv.py").write_text("import os\nhosts = [os.environ['NAME']]\n")
    logs = [folder / name for name in ("a", "b")]
    steps = [started(standby, DEBUG, log, NAME=f"gpu-{log.name}") for log in logs]
    assert [step.wait() for step in steps] == [0, 0]
    assert ["gpu-a" in log.read_text() for log in logs] == [True, False]
    assert "gpu-b" in logs[1].read_text()


def test_its_exit_status_is_that_of_pyinfra(standby: Standby, folder: Path) -> None:
    log = folder / "wrong"
    assert started(standby, [*PYINFRA, "--no-such-option"], log).wait() == 2
    assert "No such option" in log.read_text()


def test_another_command_is_not_its_business(standby: Standby, folder: Path) -> None:
    assert standby.begin(["sh", "-c", "true"], "/", {}, folder / "log") is None


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("PPid:")).split()[1])


def test_a_run_of_days_leaves_no_descriptors(standby: Standby, folder: Path) -> None:
    words = [*PYINFRA, "--version"]
    started(standby, words, folder / "log").wait()
    before = descriptors(standby.process.pid)
    for _ in range(4):
        assert started(standby, words, folder / "log").wait() == 0
    assert descriptors(standby.process.pid) == before


def test_a_step_is_waited_for_though_the_one_in_between_was_killed(
    standby: Standby, folder: Path
) -> None:
    (folder / "inv.py").write_text(WAITS)
    (folder / "waits").unlink(missing_ok=True)
    step = started(standby, DEBUG, folder / "log")
    assert wait_until((folder / "waits").exists, 60)
    between = parent(step.pid)
    os.kill(between, signal.SIGTERM)  # as of the whole group
    os.kill(between, signal.SIGKILL)
    ended = threading.Thread(target=step.wait)
    ended.start()
    ended.join(1)
    assert ended.is_alive()
    step.terminate()
    ended.join(60)
    assert not ended.is_alive()


def test_a_step_that_no_run_waits_for_does_not_begin(standby: Standby, folder: Path) -> None:
    (folder / "inv.py").write_text(WAITS)
    (folder / "waits").unlink(missing_ok=True)
    (folder / "log").touch()
    step = {"words": DEBUG[len(PYINFRA) :], "cwd": str(folder), "environment": dict(os.environ),
            "output": str(folder / "log")}  # fmt: skip
    data = json.dumps(step).encode()
    ours, theirs = socket.socketpair()
    ours.close()  # the run was killed right after its request
    socket.send_fds(standby._requests, [len(data).to_bytes(8, "big")], [theirs.fileno()])
    standby._requests.sendall(data)
    theirs.close()
    assert started(standby, [*PYINFRA, "--support"], folder / "log").wait() == 0  # takes as long
    assert not (folder / "waits").exists()


def test_nothing_begins_once_the_run_is_to_end(folder: Path) -> None:
    made = Children(lambda *_: ["touch", "begun"], str(folder), folder, "run-2")
    made.end()
    found = made.step("change", ["h"])["h"]
    assert (found.ok, found.reached) == (False, False)
    assert not (folder / "begun").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_for_the_step(standby: Standby, folder: Path, number: signal.Signals) -> None:
    (folder / "inv.py").write_text(WAITS)
    (folder / "waits").unlink(missing_ok=True)
    step = started(standby, DEBUG, folder / "log")
    assert wait_until((folder / "waits").exists, 60)
    if number is signal.SIGTERM:
        step.terminate()
    else:
        os.kill(step.pid, number)
    assert step.wait() == (0 if number is signal.SIGINT else -number)  # as pyinfra has it
    step.terminate()  # nobody is harmed
    assert standby.process.poll() is None


def test_a_step_outlives_the_terminal(folder: Path) -> None:
    """It gets SIGHUP when that goes away; the process that forks, too."""
    with without_hangup():
        standby = Standby()
    (folder / "inv.py").write_text(WAITS)
    (folder / "waits").unlink(missing_ok=True)
    step = started(standby, DEBUG, folder / "log")
    assert wait_until((folder / "waits").exists, 60)
    for pid in (standby.process.pid, parent(step.pid), step.pid):
        os.kill(pid, signal.SIGHUP)
    step.terminate()
    assert step.wait() == -signal.SIGTERM
    assert standby.process.poll() is None
    standby.end()
    standby.process.wait(60)


def test_without_it_steps_begin_as_any_other_command(tmp_path: Path) -> None:
    standby = Standby()
    standby.process.kill()
    standby.process.wait()
    assert standby.begin([*PYINFRA, "--version"], "/", {}, tmp_path / "log") is None
    standby.end()


def test_what_does_not_answer_is_not_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it begin the step later, which was started as any other command by then."""
    (folder / "inv.py").write_text(WAITS)
    (folder / "waits").unlink(missing_ok=True)
    standby = Standby()
    started(standby, [*PYINFRA, "--version"], folder / "log").wait()  # it is loaded
    os.kill(standby.process.pid, signal.SIGSTOP)
    monkeypatch.setattr("gpufleet.upgrade.operations.standby.ANSWER", 0.1)
    how: tuple[list[str], str, Any, Path] = (DEBUG, str(folder), os.environ, folder / "log")
    assert standby.begin(*how) is None
    assert standby.begin(*how) is None
    os.kill(standby.process.pid, signal.SIGCONT)
    assert standby.process.wait(60) == 0
    assert not (folder / "waits").exists()


def test_an_end_ends_the_wait_for_an_answer(folder: Path) -> None:
    standby = Standby()
    os.kill(standby.process.pid, signal.SIGSTOP)
    found: list[Forked | None] = []
    how: tuple[list[str], str, Any, Path] = (DEBUG, str(folder), os.environ, folder / "log")
    asking = threading.Thread(target=lambda: found.append(standby.begin(*how)))
    asking.start()
    assert wait_until(lambda: bool(standby._asked), 60)
    standby.end()
    asking.join(30)
    assert found == [None]
    standby.process.kill()
    standby.process.wait(60)


def test_it_ends_with_a_run_that_is_killed(tmp_path: Path) -> None:
    words = [sys.executable, "-c", OWNER]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as owner:
        assert owner.stdout
        waiting = Path(f"/proc/{int(owner.stdout.readline())}")
        assert waiting.exists()
        owner.kill()
    assert wait_until(lambda: not waiting.exists(), 60)


def test_a_step_whose_end_is_not_known_is_no_success() -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall((2**22).to_bytes(8, "big"))
    theirs.close()
    assert Forked(ours).wait() == LOST


def test_a_step_that_ended_is_not_waited_for_though_nobody_reaps_it() -> None:
    """As in a container whose first process is not an init."""
    with subprocess.Popen(["true"]) as step:
        stat = Path(f"/proc/{step.pid}/stat")
        assert wait_until(lambda: stat.read_text().split()[2] == "Z", 60)
        ours, theirs = socket.socketpair()
        theirs.sendall(step.pid.to_bytes(8, "big"))
        theirs.close()
        assert Forked(ours).wait() == LOST


def test_the_steps_of_a_run_go_through_it(
    standby: Standby, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Report, "carried_out", lambda *_: True)
    part = '{"status": "converged", "errors": [], "findings": []}'
    report = f'{{"dry": false, "completed": true, "exit_status": 0, "hosts": {{"h": {part}}}}}'
    (folder / "inv.py").write_text(
        "import os\nfrom pathlib import Path\n"
        f"Path(os.environ['GPUFLEET_REPORT']).write_text({report!r})\nhosts = ['h']\n"
    )
    begun: list[Path] = []
    begin = standby.begin
    monkeypatch.setattr(standby, "begin", lambda *how: begun.append(how[3]) or begin(*how))
    made = Children(lambda *_: DEBUG, str(folder), folder, "run-1", standby=standby)
    assert made.step("change", ["h"])["h"].ok
    assert [path.name.rpartition("-")[2] for path in begun] == ["change.log"]


@pytest.mark.parametrize("by_handle", [True, False])
def test_a_process_that_has_the_number_of_a_step_is_another_one(
    by_handle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(pid: int) -> int:
        raise OSError(errno.ENOSYS, "not implemented")

    if not by_handle:
        monkeypatch.setattr(os, "pidfd_open", none)
    with subprocess.Popen(["sleep", "60"]) as step, subprocess.Popen(["sleep", "60"]) as other:
        ours, theirs = socket.socketpair()
        theirs.sendall(step.pid.to_bytes(8, "big"))
        forked = Forked(ours)
        step.kill()
        step.wait()
        theirs.close()
        forked.pid = forked._process.pid = other.pid  # as the kernel gives it again
        monkeypatch.setattr(process, "_state_and_start", lambda pid: ("S", "later"))
        forked.terminate()
        there = forked._process.is_there()
        other.kill()
        assert (there, other.wait()) == (False, -signal.SIGKILL)  # the first signal counts
        assert forked.wait() == LOST
