"""How programs and their children end: normally, at a deadline, at a limit of output, or with this
process."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from gpufleet.core import process
from gpufleet.core.process import Process, ProgramResult, end_all, run_in_front, signal_running
from gpufleet_sandbox.waiting import wait_until

WAITS = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
CHILDREN = "sleep 60 & echo $! >{0}; sleep 60 & echo $! >>{0}; echo begun; wait"


def shell(text: str, **more: object) -> Process:
    return Process(["sh", "-c", text], **more)  # type: ignore[arg-type]


def is_gone(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_a_program_gets_its_input_and_leaves_status_output_and_errors(tmp_path: Path) -> None:
    given = b"x" * (1 << 20)  # more than a pipe takes
    result = shell("wc -c; pwd; echo bad >&2; exit 3", given=given, folder=tmp_path).wait()
    assert result == ProgramResult(3, f"{len(given)}\n{tmp_path}\n", "bad\n")
    assert shell("echo good; echo bad >&2", merged=True).wait().stdout == "good\nbad\n"
    assert shell("kill -9 $$").wait().code == -9
    assert shell("echo $A", environment={"A": "1"}).wait().stdout == "1\n"


def test_a_program_that_cannot_start_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Process([str(tmp_path / "none")])


def test_the_deadline_ends_what_it_started_too(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    result = shell(CHILDREN.format(pids), timeout=0.5).wait()
    assert result == ProgramResult(None, "begun\n", "", "it was ended after 0 s")
    assert wait_until(lambda: all(map(is_gone, pids.read_text().split())), 10)


def test_a_program_that_ignores_sigterm_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.3)
    began = time.monotonic()
    result = shell("trap '' TERM; echo begun; while :; do sleep 1; done", timeout=0.5).wait()
    assert (result.code, result.stdout) == (None, "begun\n")
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("stream", [1, 2])
def test_a_program_that_prints_without_an_end_is_ended(stream: int) -> None:
    result = shell(f"cat /dev/zero >&{stream}", most=1 << 20).wait()
    assert (result.ok, result.why) == (False, "it printed more than 1 MiB")
    assert len(result.stdout) + len(result.stderr) <= 1 << 20


def test_what_raises_while_it_runs_ends_it(tmp_path: Path) -> None:
    pids = tmp_path / "pids"

    def tick(ran: float) -> None:
        if pids.exists() and len(pids.read_text().split()) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shell(CHILDREN.format(pids)).wait(tick)
    assert wait_until(lambda: all(map(is_gone, pids.read_text().split())), 10)


def test_several_end_together_and_their_output_so_far_is_kept(tmp_path: Path) -> None:
    begun = [tmp_path / "one", tmp_path / "other"]
    both = [shell(f"echo begun; touch {each}; sleep 60; echo over") for each in begun]
    assert wait_until(lambda: all(each.exists() for each in begun), 20)
    assert [each.poll() for each in both] == [None, None]
    end_all(both)
    assert [each.poll() for each in both] == [ProgramResult(-15, "begun\n")] * 2
    last = shell("sleep 60")
    signal_running(signal.SIGTERM)
    assert last.wait().code == -15


def test_one_that_may_ask_keeps_the_terminal() -> None:
    groups = [shell("ps -o pgid= $$ || :", prompts=asks).wait().stdout for asks in (True, False)]
    assert groups[0].strip() == str(os.getpgrp())
    assert groups[1] != groups[0]


@pytest.mark.parametrize(("code", "status"), [("", 0), ("import sys; sys.exit(4)", 4)])
def test_the_status_of_a_program_in_front_is_passed_on(code: str, status: int) -> None:
    assert run_in_front([sys.executable, "-c", code], os.environ) == status


def test_a_program_in_front_is_ended_by_the_signal_for_this_process(tmp_path: Path) -> None:
    """SIGINT is not forwarded, because a terminal sends it to both processes."""
    began, both = tmp_path / "began", (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in both]

    def send() -> None:
        assert wait_until(began.exists, 60)
        for number in both:
            signal.pthread_kill(threading.main_thread().ident or 0, number)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    assert run_in_front([sys.executable, "-c", WAITS, str(began)], os.environ) == 143
    sender.join(60)
    assert [signal.getsignal(number) for number in both] == before


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals the end of a parent")
def test_a_bound_program_ends_with_us_after_sigkill(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    words = ["sh", "-c", f"echo $$ >{pid}; exec sleep 60"]
    code = f"from gpufleet.core.process import Process; Process({words!r}, bound=True).wait()"
    ours = Process([sys.executable, "-c", code])
    assert wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"), 30)
    ours.send(signal.SIGKILL)
    assert wait_until(lambda: is_gone(pid.read_text().strip()), 10)
    ours.end()
