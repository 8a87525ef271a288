"""Runs on several workers that a signal ends, or the death of a process."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from parts import (
    Controlled,
    is_alive,
    kept,
    report,
    requested,
    run,
    runs_of,
    states,
    waiting_worker,
)

from gpufleet.core.python import python_code
from gpufleet.run.shards import Result
from gpufleet_sandbox.waiting import wait_until


@pytest.fixture(autouse=True)
def _not_under_nohup() -> Iterator[None]:
    """`nohup make test` ignores SIGHUP, and its children inherit that."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def waiting(site: Path) -> Iterator[Callable[[int], None]]:
    """Sends this process a signal once a worker waits."""
    threads: list[threading.Thread] = []

    def send(number: int) -> None:
        assert wait_until((site / "waits").exists, 30)
        os.kill(os.getpid(), number)

    def start(number: int) -> None:
        threads.append(threading.Thread(target=send, args=(number,), daemon=True))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join(30)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_a_signal_ends_the_workers_in_order(
    site: Path,
    waiting: Callable[[int], None],
    number: int,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gpufleet.run.shards.LARGEST", 1)
    ended: list[int] = []
    monkeypatch.setattr("gpufleet.run.lifecycle.end", ended.append)
    before = signal.getsignal(number)
    waiting(number)
    assert run(requested("slow", "a", workers=1)) == status
    assert ended == [status]
    assert states(site) == {"slow": "not reached", "a": "not reached"}
    assert runs_of(site, "a") == 0
    assert signal.getsignal(number) == before


def test_a_hangup_that_nohup_ignores_is_ignored(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[object] = []
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    monkeypatch.setattr(
        "gpufleet.cli.sharded.result_of",
        lambda *_, **__: found.append(signal.getsignal(signal.SIGHUP)) or Result(),
    )
    try:
        run(requested("a"))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert found == [signal.SIG_IGN]


def test_a_worker_that_is_stopped_without_a_report_was_interrupted(
    site: Path, waiting: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpufleet.run.lifecycle.end", lambda status: None)
    waiting(signal.SIGTERM)
    assert run(requested("mute")) == 143
    (finding,) = report(site)["hosts"]["mute"]["findings"]
    assert "failed: the run was interrupted." in finding["message"]


def test_a_second_signal_kills_the_workers_and_ends_at_once(controlled: Controlled) -> None:
    process = controlled.start("deaf")
    process.send_signal(signal.SIGINT)
    assert process.stderr
    assert "Ctrl+C ends them at once" in process.stderr.readline()
    worker = waiting_worker()
    assert is_alive(worker)
    process.send_signal(signal.SIGINT)
    assert process.wait(5) == 130
    assert wait_until(lambda: not is_alive(worker), 5)
    said = process.stderr.read()
    assert "Ended at once" in said
    assert "at work" in (kept(said) / "1").read_text()


def test_workers_end_in_order_when_the_run_is_killed(controlled: Controlled) -> None:
    process = controlled.start("slow")
    process.kill()
    assert wait_until(Path("stopped").exists, 10)
    assert wait_until(lambda: not is_alive(waiting_worker()), 5)


def test_the_report_is_written_when_the_terminal_is_gone(controlled: Controlled) -> None:
    ours, theirs = pty.openpty()
    process = controlled.start("slow", stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.close(ours)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGHUP)
    assert process.wait(30) == 143
    assert states(Path()) == {"slow": "not reached"}


def test_a_worker_that_does_not_end_in_order_is_killed(site: Path) -> None:
    code = "from gpufleet.cli import part; part.GRACE = 0.1; part.main()"
    process = subprocess.Popen(
        [*python_code(code), "--limit", "deaf"], start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin
    try:
        process.stdin.write(b"[]\n")
        process.stdin.flush()
        assert wait_until(Path("waits").exists, 30)
        process.communicate(timeout=10)  # closes its standard input
        assert process.returncode == -signal.SIGKILL
    finally:
        process.kill()
        process.wait(10)
