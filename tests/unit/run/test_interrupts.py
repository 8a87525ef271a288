"""Ctrl+C reaches the main greenlet, and ends a process that still loads."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import gevent
import pytest

from gpufleet.run.interrupts import ended_by_interrupt, interrupt_main_greenlet


@pytest.fixture(autouse=True)
def pythons_handler() -> Iterator[None]:
    """A test run in the background of a shell ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_in_another_greenlet_reaches_the_main_one() -> None:
    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:  # noqa: BLE001  # as a thread of paramiko
            return

    gevent.spawn(work)
    with interrupt_main_greenlet(), pytest.raises(KeyboardInterrupt):
        gevent.sleep(60)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_the_main_greenlet_is_raised_there() -> None:
    with interrupt_main_greenlet(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_ends_a_process_that_loads() -> None:
    code = (
        "import signal; from gpufleet.run.interrupts import ended_by_interrupt\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with ended_by_interrupt(): signal.raise_signal(signal.SIGINT)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


@pytest.mark.parametrize("change", [ended_by_interrupt, interrupt_main_greenlet])
def test_an_ignored_ctrl_c_stays_ignored(change: type) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with change():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
