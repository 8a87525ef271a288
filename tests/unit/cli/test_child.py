"""A program of ours gets the signals that end this process."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from gpufleet.cli.child import run_child
from gpufleet_sandbox.waiting import wait_until

WAITS = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"


@pytest.mark.parametrize(("code", "status"), [("", 0), ("import sys; sys.exit(4)", 4)])
def test_the_status_of_a_program_is_passed_on(code: str, status: int) -> None:
    assert run_child([sys.executable, "-c", code], os.environ) == status


def test_it_is_ended_by_the_signal_for_this_process(tmp_path: Path) -> None:
    """Not by SIGINT, which a terminal sends to both."""
    began, both = tmp_path / "began", (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in both]

    def send() -> None:
        assert wait_until(began.exists, 60)
        for number in both:
            signal.pthread_kill(threading.main_thread().ident or 0, number)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    assert run_child([sys.executable, "-c", WAITS, str(began)], os.environ) == 143
    sender.join(60)
    assert [signal.getsignal(number) for number in both] == before
